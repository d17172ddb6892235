"""A flag as the device waits for it: set by whichever write of it runs first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from refimpl.device.simulator.ops import Kind, Op, Queue


def any_of(flag: str, writes: Sequence[Op]) -> Op:
    """What a wait for a flag comes after: its one write, or the first of several that runs, also of those that are
    still to be issued."""
    return writes[0] if len(writes) == 1 else _AnyOf(f"a write of {flag}", writes)


class _AnyOf(Op):
    """Stands for the first of several ops that runs: all of an op's ``after`` must have run before it starts, so that
    "one of these" needs an op of its own. It is in no queue and does not run."""

    __slots__ = ("_writes",)

    def __init__(self, name: str, writes: Sequence[Op]) -> None:
        self._writes = tuple(writes)
        super().__init__(Kind.RECORD, name, Queue(0))

    @property
    def done(self) -> bool:
        """Whether a write has run."""
        return any(write.done for write in self._writes)

    @done.setter
    def done(self, value: bool) -> None:
        pass

    @property
    def end_us(self) -> float:
        """When the first write ends, as far as that is known."""
        return min((write.end_us for write in self._writes), default=math.inf)

    @end_us.setter
    def end_us(self, value: float) -> None:
        pass

    @property
    def after(self) -> tuple[Op, ...]:
        """What a host that is blocked may have to run."""
        return self._writes

    @after.setter
    def after(self, value: tuple[Op, ...]) -> None:
        pass
