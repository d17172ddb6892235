"""What a ``Program`` makes its lanes do: the operational reading of the rules, without any happens-before.

``graph`` and ``checker`` say who comes before whom. This says what a device *does*: the host makes one call after the
other, each lane takes its units first in, first out, and a unit may begin when what it waits for has run. The explorer
searches all orders that this allows, and the player issues the same units on the simulated device. It is written from
the format's rules apart from the other two, so that a misread rule shows as a disagreement.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from refimpl.program import Program, Range


class Bytes(NamedTuple):
    """Bytes of one memory, under the name of the buffer that they are used by.

    Args:
        memory: ``"buffer x"``, or ``"block b"`` for a buffer in a block of the caching allocator: successive owners of
            a block share one memory, from its first byte on.
        range: the bytes, as the op names them.
    """

    memory: str
    range: Range


@dataclass(frozen=True)
class Unit:
    """One piece of work of a stream, of a graph's node or of an agent beside the host.

    It may begin when its call was made, the unit before it in its lane has run, all units in ``after`` have run, and
    some unit that sets ``flag`` has run. Nothing else holds it.

    Args:
        index: its place in the order of issue; every unit in ``after`` has a smaller one.
        op: index of the op, which is also the call that issues it.
        lane: number of its lane (``Units.lanes``).
        name: what it is.
        node: the node's name, for a node of a graph.
        reads, writes: the bytes that it uses while it runs.
        after: units of other lanes that it waits for.
        flag: the flag that it waits for: set by any unit of ``Units.writers``, also by one that is issued later.
        sets: the flag that it sets.
    """

    index: int
    op: int
    lane: int
    name: str
    node: str | None = None
    reads: tuple[Bytes, ...] = ()
    writes: tuple[Bytes, ...] = ()
    after: tuple[int, ...] = ()
    flag: str | None = None
    sets: str | None = None


@dataclass(frozen=True)
class Call:
    """One op of the program as the host makes it: one step ``h`` of a schedule.

    The step is where the call takes effect, all at once and before a lane moves again: the host has passed ``first``,
    uses its bytes, and issues the units. It makes its next call when ``until`` has run. So a synchronize is called at
    once and holds the call after it, and a copy from pageable memory, which reads its source on the host behind all
    that its stream holds, waits in ``first``.

    Args:
        op: index of the op; one call an op, in order.
        name: what it is.
        first: units that must have run before this call takes effect.
        reads, writes: bytes that the host itself uses at the call.
        units: the units that it issues, in order.
        until: units that must have run before the host makes its next call.
    """

    op: int
    name: str
    first: tuple[int, ...] = ()
    reads: tuple[Bytes, ...] = ()
    writes: tuple[Bytes, ...] = ()
    units: tuple[int, ...] = ()
    until: tuple[int, ...] = ()


@dataclass(frozen=True)
class Units:
    """What a program makes the host and its lanes do.

    Args:
        program: where it comes from.
        calls: what the host does, one call an op.
        units: all work in the order of issue; a unit's ``index`` is its place here.
        lanes: names of the lanes by number. Streams and agents count from 1 in the order in which they first get work
            (each ``host_async_begin`` is an agent of its own), nodes of graphs from -1 down in the order of issue, each
            node of each launch a lane of its own.
        writers: for each flag, the units that set it.
    """

    program: Program
    calls: tuple[Call, ...]
    units: tuple[Unit, ...]
    lanes: Mapping[int, str]
    writers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
