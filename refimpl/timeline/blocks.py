"""The caching allocator's blocks: who holds which, and what a reuse has to wait for."""

from collections.abc import Callable
from dataclasses import dataclass, field

from refimpl.program.ops import RecordStream, TensorAlloc, TensorFree
from refimpl.timeline.tasks import Task


@dataclass
class _Owner:
    lanes: dict[str, None] = field(default_factory=dict)
    marks: list[Task] = field(default_factory=list)


class Blocks:
    """Which tensor lives in which block; one that recorded streams used delays the next owner of its block."""

    def __init__(self) -> None:
        self._by_buf: dict[str, _Owner] = {}
        self._by_block: dict[str, _Owner] = {}

    def take(self, op: TensorAlloc) -> list[Task]:
        """The new owner moves in; returns the marks of the last owner's free that the host has to see passed."""
        if op.block is None:
            return []
        last = self._by_block.get(op.block)
        self._by_buf[op.buf] = self._by_block[op.block] = _Owner()
        return last.marks if last is not None else []

    def use(self, op: RecordStream, lane: str) -> None:
        """The allocator learns that the lane uses the buffer."""
        if op.buf in self._by_buf:
            self._by_buf[op.buf].lanes[lane] = None

    def give_back(self, op: TensorFree, mark: Callable[[str], Task]) -> None:
        """The buffer is freed: ``mark`` is called for the tail of every lane that was recorded."""
        owner = self._by_buf.get(op.buf)
        if owner is not None:
            owner.marks += [mark(lane) for lane in owner.lanes]
