"""What is at stake between two steps that touch the same bytes: the hazard, and the bytes."""

from collections.abc import Iterator
from typing import Protocol

from refimpl.order.report import Hazard
from refimpl.order.shadow import shared
from refimpl.program import Range

Accesses = tuple[tuple[str, Range], ...]


class Touching(Protocol):
    """What touches bytes, as (memory, range): successive owners of a block share one memory."""

    @property
    def reads(self) -> Accesses:
        """The bytes that it reads."""

    @property
    def writes(self) -> Accesses:
        """The bytes that it writes."""


def conflicts(a: Touching, b: Touching) -> Iterator[tuple[Hazard, Range]]:
    """The hazards between two steps, ``a`` issued first, with the first bytes of each."""
    for kind, ours, theirs in (
        (Hazard.RAW, a.writes, b.reads),
        (Hazard.WAR, a.reads, b.writes),
        (Hazard.WAW, a.writes, b.writes),
    ):
        for memory, r in ours:
            for other, q in theirs:
                bytes_ = shared(q, r) if memory == other else None
                if bytes_ is not None:
                    yield (Hazard.LIFETIME if r.buf != q.buf else kind), bytes_
