"""``Fences``: which variant of each fence an engine runs with."""

from dataclasses import dataclass

from refimpl.fences.publish import Publish
from refimpl.fences.read_done import ReadDone
from refimpl.fences.war_barrier import WarBarrier


@dataclass(frozen=True)
class Fences:
    """The variants that an engine runs with; the defaults are upstream's most recent ones, and right.

    Args:
        publish: what orders the schedule stream's read of the relayed lengths after the forward's write.
        war_barrier: what orders the schedule stream's writes of shared tables after the forward's reads.
        read_done: where the forward says that it has read them.

    Raises:
        TypeError: a value is not a variant of its fence.
    """

    publish: Publish = Publish.READY
    war_barrier: WarBarrier = WarBarrier.AFTER_RUN_BATCH
    read_done: ReadDone = ReadDone.PRE_REPLAY

    def __post_init__(self) -> None:
        for name, kind in (("publish", Publish), ("war_barrier", WarBarrier), ("read_done", ReadDone)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"Fences: {name}={value!r} is not a variant: use one of {', '.join(kind)}")
