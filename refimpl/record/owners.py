"""What each owner of memory that can be handed on did with it, as far as it decides whether later owners are safe."""

from __future__ import annotations

from collections.abc import Iterable

from refimpl.program import Mem
from refimpl.record.entries import Entry, Issued, Launched, Lent, Lived, Touched
from refimpl.record.work import Access, Buffer, Kind, Lane, Work


class Owner:
    """One buffer in memory that others have before or after it.

    Args:
        buffer: The buffer.
    Attributes:
        born: Place of its allocation among the entries; -1 if it is older.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.buffer, self.born = buffer, -1
        self._freed = self._stale = False
        self._settled: bool | None = None
        self._lent: set[Lane] = set()
        self._uses: set[tuple[Lane | None, Kind, bool]] = set()

    @property
    def start(self) -> int:
        """Address of its first byte."""
        assert self.buffer.block is not None
        return self.buffer.block

    @property
    def end(self) -> int:
        """Address after its last byte."""
        return self.start + max(self.buffer.bytes, 1)

    @property
    def is_always_open(self) -> bool:
        """Graphs have it at every replay, or used it after its end."""
        return self.buffer.of_graphs or self._stale

    @property
    def is_open(self) -> bool:
        """Some use of it is ordered with later owners' by neither its stream nor the allocator."""
        return any(self._is_outside(use[0]) and not self.covers(*use) for use in self._uses)

    @property
    def is_unsettled(self) -> bool:
        """Some use of it is ordered with former owners' by neither its stream nor what it did first.

        A buffer whose first use writes all of it on its own stream is in order with them: any other use comes after
        that write, or is a race within the buffer. Pinned memory is in order with them by the host.
        """
        outside = any(self._is_outside(use[0]) for use in self._uses)
        return self.buffer.mem is Mem.DEVICE and outside and not self._settled

    @property
    def is_covered(self) -> bool:
        """Some use of it is over before a later owner can have the memory."""
        return any(self.covers(*use) for use in self._uses)

    @property
    def is_unclear(self) -> bool:
        """A use that later owners are safe from is not known to come after what former owners did."""
        return self.is_unsettled and self.is_covered

    def covers(self, lane: Lane | None, kind: Kind, in_graph: bool) -> bool:
        """Whether the allocator waits for a use before it hands the memory on: it knows of the streams of
        `record_stream`, and of copies from and to pinned memory that are not in a graph."""
        if self.is_always_open or not self._is_outside(lane):
            return False
        if self.buffer.mem is Mem.DEVICE:
            return lane in self._lent
        return kind is Kind.COPY and not in_graph

    def note(self, entry: Lived | Lent, at: int) -> None:
        """The allocator handed it out, took it back, or learned of a stream."""
        if isinstance(entry, Lent):
            self._lent.add(entry.lane)
        elif entry.begins:
            self.born = at
        else:
            self._freed = True

    def use(self, lane: Lane | None, kind: Kind, in_graph: bool, writes_all: bool) -> None:
        """It was used."""
        if self._settled is None:
            self._settled = writes_all and not in_graph and not self._is_outside(lane)
        self._stale |= self._freed
        self._uses.add((lane, kind, in_graph))

    def _is_outside(self, lane: Lane | None) -> bool:
        """Whether a lane is another than the one it was allocated on: a stream, or for host memory the host."""
        return lane is not None if self.buffer.mem is not Mem.DEVICE else lane is None or lane != self.buffer.lane


def owners_of(entries: Iterable[Entry]) -> list[Owner]:
    """The owners of memory that can be handed on and is used, in the order in which they are met."""
    owners: dict[Buffer, Owner] = {}
    used: dict[Buffer, Owner] = {}
    for at, entry in enumerate(entries):
        if isinstance(entry, Lived | Lent):
            if entry.buffer.block is not None:
                owners.setdefault(entry.buffer, Owner(entry.buffer)).note(entry, at)
            continue
        for buffer, lane, kind, in_graph, writes_all in _uses(entry):
            if buffer.block is not None:
                owner = used[buffer] = owners.setdefault(buffer, Owner(buffer))
                owner.use(lane, kind, in_graph, writes_all)
    return list(used.values())


def _uses(entry: Entry) -> Iterable[tuple[Buffer, Lane | None, Kind, bool, bool]]:
    if isinstance(entry, Touched):
        yield entry.access.buffer, None, Kind.LAUNCH, False, False
    elif isinstance(entry, Issued):
        for work in entry.works:
            yield from ((b, work.lane, work.kind, False, whole) for b, whole in _touched(work))
    elif isinstance(entry, Launched):
        for work in entry.works:
            yield from ((b, entry.lane, work.kind, True, False) for b, _ in _touched(work))


def _touched(work: Work) -> Iterable[tuple[Buffer, bool]]:
    """The buffers that work touches, each with whether it writes all of it."""
    all_of = {
        one.buffer
        for one in work.writes
        if isinstance(one, Access) and one.rows == 1 and one.offset == 0 and one.length >= one.buffer.bytes
    }
    touched = dict.fromkeys(one.buffer for one in (*work.reads, *work.writes))
    return ((buffer, buffer in all_of) for buffer in touched)
