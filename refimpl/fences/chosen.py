"""``Fences``: which variant of each fence an engine runs with."""

from __future__ import annotations

from dataclasses import dataclass, fields

from refimpl.fences.draft_done import DraftDone
from refimpl.fences.lengths import Lengths
from refimpl.fences.publish import Publish
from refimpl.fences.read_done import ReadDone
from refimpl.fences.verify_done import VerifyDone
from refimpl.fences.war_barrier import Platform, WarBarrier


@dataclass(frozen=True)
class Fences:
    """The variants that an engine runs with; the defaults are upstream's most recent ones, and right.

    Args:
        lengths: who carries the new lengths to the next step.
        verify_done: who waits for the event of the last draft input. With ``lengths`` in the draft input it orders
            their reads; with the relay it is DFLASH's own fence around ``req_to_token``.
        publish: what orders reads and seeds of the relay with the forward's writes.
        draft_done: what orders the plan of a verify after the draft; matters with a plan stream alone.
        war_barrier: where schedule's writes of shared tables are ordered after the forward's reads.
        read_done: where the forward says that it has read them.
        platform: upstream's barrier is off where it is not CUDA.

    Raises:
        TypeError: a value is not a variant of its fence.
        ValueError: no preset and no experiment of the history names this combination.
    """

    lengths: Lengths = Lengths.FUTURE_MAP
    verify_done: VerifyDone = VerifyDone.NONE
    publish: Publish = Publish.WAIT_STREAM
    draft_done: DraftDone = DraftDone.EARLY
    war_barrier: WarBarrier = WarBarrier.AFTER_RUN_BATCH
    read_done: ReadDone = ReadDone.DECLARED
    platform: Platform = Platform.CUDA

    def __post_init__(self) -> None:
        from refimpl.fences.history import named_combinations

        for name, kind in KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"Fences: {name}={value!r} is not a variant: use one of {', '.join(kind)}")
        named = named_combinations()
        if self.combination not in named:
            nearest = min(named, key=self._distance)
            raise ValueError(
                f"Fences({self._written()}): no preset or experiment of fences/history.json names this combination; "
                f"the nearest is {named[nearest]!r}: choose that, or name yours there, with what is expected of it"
            )

    @property
    def combination(self) -> tuple[str, ...]:
        """The variants by name, in the order of the fields."""
        return tuple(str(getattr(self, field.name)) for field in fields(self))

    def _distance(self, other: tuple[str, ...]) -> int:
        return sum(one != another for one, another in zip(self.combination, other, strict=True))

    def _written(self) -> str:
        changed = (field for field in fields(self) if getattr(self, field.name) != field.default)
        return ", ".join(f"{field.name}={str(getattr(self, field.name))!r}" for field in changed)


KINDS = {
    "lengths": Lengths,
    "verify_done": VerifyDone,
    "publish": Publish,
    "draft_done": DraftDone,
    "war_barrier": WarBarrier,
    "read_done": ReadDone,
    "platform": Platform,
}
"""The variants of each field of :class:`Fences`."""
