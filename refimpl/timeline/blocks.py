"""The caching allocator's blocks: who holds which, and what a reuse has to wait for."""

from collections.abc import Callable

from refimpl.order.graph import blocks_before
from refimpl.program import Program
from refimpl.program.ops import RecordStream, TensorAlloc, TensorFree
from refimpl.timeline.tasks import Task


class Blocks:
    """Which tensor lives in which block, and which streams the allocator knows of: the rules of ``refimpl.order``.

    Args:
        program: whose tensors they are; some may have been handed out before it begins.
    """

    def __init__(self, program: Program) -> None:
        self._block_of = blocks_before(program)
        self._home: dict[str, str | None] = {}
        self._users: dict[str, list[str]] = {}
        self._pending: dict[str, list[Task]] = {}

    def take(self, op: TensorAlloc, home: str | None) -> list[Task]:
        """The buffer is handed out on lane ``home``; returns the marks that the host has to see passed before."""
        self._home[op.buf] = home
        if op.block is None:
            return []
        self._block_of[op.buf] = op.block
        self._users.pop(op.buf, None)
        return self._pending.pop(op.block, [])

    def use(self, op: RecordStream, lane: str) -> None:
        """The allocator learns that the lane uses the buffer; of the one that it was handed out on it knows."""
        if self._home.get(op.buf) != lane:
            self._users.setdefault(op.buf, []).append(lane)

    def give_back(self, op: TensorFree, mark: Callable[[str], Task]) -> None:
        """The buffer is freed: ``mark`` is called for the tail of every lane that was recorded."""
        users, block = self._users.pop(op.buf, []), self._block_of.get(op.buf)
        if block is not None:
            self._pending.setdefault(block, []).extend(mark(lane) for lane in users)
