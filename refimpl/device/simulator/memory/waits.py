"""Blocks that were freed while other streams may still use them, and come back when those are done."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from refimpl.device.simulator.memory.blocks import Block

if TYPE_CHECKING:
    from refimpl.device.simulator.ops import Op

B = TypeVar("B", bound=Block)


class Waits(Generic[B]):
    """What each stream still had to do when a block that it uses was freed, looked at later without blocking.

    Args:
        tail: The last op issued to a stream, or None.
        per_stream: Each stream has a line of its own, so that one with much to do holds up no other's blocks; else
            there is one line.
    """

    def __init__(self, tail: Callable[[int], Op | None], per_stream: bool) -> None:
        self._tail, self._per_stream = tail, per_stream
        self._lines: dict[int, deque[tuple[Op | None, B]]] = {}

    def __bool__(self) -> bool:
        return bool(self._lines)

    def fresh(self) -> Waits[B]:
        """Another one of its kind, for which nothing waits."""
        return Waits(self._tail, self._per_stream)

    def add(self, block: B, stream_ids: Iterable[int]) -> None:
        """Marks what is now queued on each stream: `block` comes back when all of it has run."""
        for id_ in sorted(stream_ids):
            block.waits += 1
            self._lines.setdefault(id_ if self._per_stream else 0, deque()).append((self._tail(id_), block))

    def over(self) -> list[B]:
        """The blocks whose last wait is over; they are forgotten here."""
        back: list[B] = []
        for id_, line in list(self._lines.items()):
            while line and (line[0][0] is None or line[0][0].done):
                block = line.popleft()[1]
                block.waits -= 1
                if not block.waits:
                    back.append(block)
            if not line:
                del self._lines[id_]
        return back

    def all(self) -> list[B]:
        """Every block that waits, over or not; they are forgotten here."""
        blocks = list(dict.fromkeys(block for line in self._lines.values() for _, block in line))
        self._lines.clear()
        for block in blocks:
            block.waits = 0
        return blocks

    def pending(self) -> list[Op]:
        """The ops that blocks wait for."""
        return [op for line in self._lines.values() for op, _ in line if op is not None and not op.done]
