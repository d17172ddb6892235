"""Memory that was handed on: which buffers of a recording are successive owners of the same bytes, as far as it counts.

`record_stream` is no fence. A use on a stream that it named before the memory was freed is over, whatever the timing,
before anybody else can have the bytes, so that use conflicts with no later owner; but nothing else is ordered by it. A
recording has no `record_stream` op: what the allocator promises is in which accesses meet.

Limits: what a graph uses after the free counts as a use that nobody covers. Which owner gets a block that had to wait
depends on the timing, so the owners are those of the recorded run. On a GPU nobody tells of the blocks of pinned
memory, nor of those that one capture cuts or puts together.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from refimpl.record.entries import Entry, Issued, Launched, Touched
from refimpl.record.merging import found
from refimpl.record.owners import Owner, owners_of
from refimpl.record.work import Access, Buffer, Kind, Lane, Work


@dataclass(frozen=True)
class _Place:
    """Where the accesses of a buffer meet those of other owners: in `memory`, from `offset` on."""

    owner: Owner
    memory: Buffer
    offset: int

    def placed(self, access: Access, lane: Lane | None, kind: Kind, in_graph: bool) -> tuple[Access, ...]:
        """An access in the memory that it shares, and in the buffer's own where a part of its uses is covered."""
        if self.owner.covers(lane, kind, in_graph):
            return (access,)
        shared = access._replace(buffer=self.memory, offset=access.offset + self.offset)
        return (access, shared) if self.owner.is_covered else (shared,)


class Lifetimes:
    """Where each access of a recording meets those of other owners of its bytes.

    Owners whose bytes begin at one address keep their names: the program tells when each had the block. Owners that
    begin elsewhere, since a block was cut or put together with its neighbour, are one buffer of the program under a
    name of its own, which no `tensor_alloc` tells of, so that the hazard is RAW, WAR or WAW. An owner of which
    `record_stream` covers a use has a buffer of its own beside. All other owners are buffers of their own: telling of
    them could change no verdict.

    Args:
        entries: What was noted.
    Attributes:
        unclear: Buffers that are used on a stream that `record_stream` named and not written first on the stream that
            they were allocated on: such a use is not held against the former owners of the memory.
        joined: Of each memory that stands for several owners, those.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._places: dict[Buffer, _Place] = {}
        self._told: dict[Buffer, Buffer] = {}
        self.unclear: list[Buffer] = []
        self.joined: dict[Buffer, list[Buffer]] = {}
        for group in _groups(owners_of(entries)):
            self._link(group)

    def told(self, buffer: Buffer) -> Buffer | None:
        """The buffer of the program whose allocation and end stand for those of `buffer`, if they are told."""
        return self._told.get(buffer)

    def entries(self) -> Sequence[Entry]:
        """What was noted, each access where it meets others."""
        if not self._places:
            return self._entries
        return [placed for entry in self._entries for placed in self._entry(entry)]

    def _link(self, group: Sequence[Owner]) -> None:
        start, end = group[0].start, max(owner.end for owner in group)
        first = group[0].buffer
        one_start = all(owner.start == start for owner in group)
        merged = Buffer(end - start, first.mem, stem="memory")
        if not one_start:
            self.joined[merged] = [owner.buffer for owner in group]
        for owner in group:
            buffer = owner.buffer
            if not one_start:
                memory = merged
            elif owner.is_covered:
                memory = Buffer(buffer.bytes, buffer.mem, buffer.lane, buffer.block, stem="memory")
            else:
                memory = buffer
            if one_start:
                self._told[buffer] = memory
            self._places[buffer] = _Place(owner, memory, 0 if one_start else owner.start - start)
        earliest = min(owner.born for owner in group)
        self.unclear += [owner.buffer for owner in group if owner.is_unclear and owner.born > earliest]

    def _entry(self, entry: Entry) -> Iterator[Entry]:
        if isinstance(entry, Issued):
            yield replace(entry, works=tuple(self._work(work, work.lane) for work in entry.works))
        elif isinstance(entry, Launched):
            new = {id(work): self._work(work, entry.lane, in_graph=True) for work in entry.works}
            after = tuple(tuple(new[id(work)] for work in before if id(work) in new) for before in entry.after)
            yield replace(entry, works=tuple(new.values()), after=after)
        elif isinstance(entry, Touched):
            place = self._places.get(entry.access.buffer)
            placed = (entry.access,) if place is None else place.placed(entry.access, None, Kind.LAUNCH, False)
            yield from (replace(entry, access=access) for access in placed)
        else:
            yield entry

    def _work(self, work: Work, lane: Lane, in_graph: bool = False) -> Work:
        if not any(one.buffer in self._places for one in (*work.reads, *work.writes)):
            return work

        def placed(accesses: Iterable[Access]) -> tuple[Access, ...]:
            return tuple(
                new
                for access in accesses
                for new in (
                    self._places[access.buffer].placed(access, lane, work.kind, in_graph)
                    if access.buffer in self._places
                    else (access,)
                )
            )

        return replace(work, reads=placed(found(work.reads)), writes=placed(found(work.writes)))


def _groups(owners: Iterable[Owner]) -> Iterator[list[Owner]]:
    """Owners that share bytes with a loose one, in groups of two and more that share bytes."""
    ordered = sorted(owners, key=lambda owner: (owner.start, owner.born))
    for cluster in _overlapping(ordered):
        loose = list(_overlapping(_loose(cluster)))
        starts, ends = [run[0].start for run in loose], [max(owner.end for owner in run) for run in loose]
        linked = [owner for owner in cluster if bisect_right(ends, owner.start) < bisect_left(starts, owner.end)]
        yield from (group for group in _overlapping(linked) if len(group) > 1)


def _loose(cluster: Sequence[Owner]) -> list[Owner]:
    """The owners of which some use may be unordered with another owner's."""
    born = [owner.born for owner in cluster]
    first, last = min(born), max(born)
    return [
        owner
        for owner in cluster
        if owner.is_always_open or (owner.is_open and owner.born < last) or (owner.is_unsettled and owner.born > first)
    ]


def _overlapping(ordered: Iterable[Owner]) -> Iterator[list[Owner]]:
    """Runs of owners, in the order of their addresses, that share bytes."""
    run, end = list[Owner](), 0
    for owner in ordered:
        if run and owner.start >= end:
            yield run
            run = []
        end = max(end, owner.end) if run else owner.end
        run.append(owner)
    if run:
        yield run
