"""From entries to a stream program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from refimpl.program import (
    CopyKind,
    DeviceSync,
    EventQuery,
    EventRecord,
    EventSync,
    HostRead,
    HostWork,
    HostWrite,
    Launch,
    Mem,
    Memcpy,
    Op,
    StreamQuery,
    StreamSync,
    StreamWaitEvent,
    StreamWaitStream,
    TensorAlloc,
    TensorFree,
)
from refimpl.record.cells import Cells
from refimpl.record.entries import Called, Entry, Issued, Launched, Lent, Lived, Stepped, Touched
from refimpl.record.graphs import launch_of
from refimpl.record.lifetimes import Lifetimes
from refimpl.record.merging import duration, found, merged, ranges
from refimpl.record.names import Names
from refimpl.record.work import Buffer, HostKind, HostStep, Kind, Work


class Lowering:
    """One way from entries to ops: which memory is private to an op, and whose life is told.

    Args:
        entries: What was noted.
        names: Takes the names that are not given.
    """

    def __init__(self, entries: Sequence[Entry], names: Names) -> None:
        self._names, self._lifetimes = names, Lifetimes(entries)
        self._noted, self._entries = entries, self._lifetimes.entries()
        private = _private(self._entries, names)
        self._private = {buffer for buffer in private if self._lifetimes.told(buffer) is None}

    def ops(self) -> list[tuple[Op, Entry]]:
        """The ops of the program, each with the entry it comes from."""
        lowered: list[tuple[Op, Entry]] = []
        skip = False
        for entry, following in zip_longest(self._entries, self._entries[1:]):
            if skip:
                skip = False
                continue
            joined = _wait_stream(entry, following, self._names)
            if joined is not None and following is not None:
                lowered.append((joined, following))
                skip = True
            else:
                lowered += [(op, entry) for op in self._ops(entry)]
        return lowered

    def joined(self) -> dict[str, tuple[str, ...]]:
        """By name of each memory that stands for several owners one after another: those of them that have names."""
        named = {
            self._names.buffer(memory): tuple(
                self._names.buffer(owner) for owner in owners if self._names.given(("buffer", owner.serial))
            )
            for memory, owners in self._lifetimes.joined.items()
        }
        return {memory: owners for memory, owners in named.items() if owners}

    def widened(self) -> tuple[str, ...]:
        """Where more or less is counted than is touched: op, buffer, and call site."""
        found = dict[str, None]()
        for buffer in self._lifetimes.unclear:
            found[f"{self._names.buffer(buffer)} is not held against the former owners of its memory"] = None
        for entry in self._noted:
            for work in entry.works if isinstance(entry, Issued | Launched) else ():
                for one in (*work.reads, *work.writes):
                    if isinstance(one, Cells) and one.widened:
                        name = work.region.name if work.region is not None else work.name
                        found[f"{name} of {self._names.buffer(one.buffer)} at {entry.called.site}"] = None
        return tuple(found)

    def _ops(self, entry: Entry) -> Iterable[Op]:
        if isinstance(entry, Issued):
            return [self._work(entry)]
        if isinstance(entry, Launched):
            return [launch_of(entry, self._names)]
        if isinstance(entry, Stepped):
            return _host(entry.step, self._names, entry.called)
        if isinstance(entry, Touched):
            return [_touch(entry, self._names)]
        return self._life(entry)

    def _work(self, entry: Issued) -> Op:
        first, called = entry.works[0], entry.called
        stream = self._names.stream(first.lane)
        if first.mark is not None:
            event = self._names.event(first.mark)
            made = EventRecord if first.kind is Kind.RECORD else StreamWaitEvent
            return made(event=event, stream=stream, site=called.site, step=called.step)
        if len(entry.works) == 1 and (copy := _copy(first, stream, self._names, called)) is not None:
            return copy
        reads, writes = merged(entry.works, self._private)
        return Launch(
            stream=stream,
            name=first.region.name if first.region is not None else first.name,
            reads=ranges(reads, self._names),
            writes=ranges(writes, self._names),
            us=duration(entry.works),
            site=called.site,
            step=called.step,
        )

    def _life(self, entry: Lived | Lent) -> Iterable[Op]:
        buffer, called = self._lifetimes.told(entry.buffer), entry.called
        if buffer is None or isinstance(entry, Lent):
            return
        made = TensorAlloc if entry.begins else TensorFree
        lane, block = buffer.lane, buffer.block
        yield made(
            buf=self._names.buffer(buffer),
            stream=None if lane is None else self._names.stream(lane),
            block=None if block is None else self._names.block(block),
            site=called.site,
            step=called.step,
        )


def _private(entries: Iterable[Entry], names: Names) -> set[Buffer]:
    """Memory that is new, has no given name, and is used by one entry of several parts alone, on the stream that it was
    allocated on."""
    lived = {entry.buffer for entry in entries if isinstance(entry, Lived) and entry.begins}
    born = {buffer for buffer in lived if buffer.mem is Mem.DEVICE}
    once, often = set[Buffer](), set[Buffer]()
    inside = set[Buffer]()
    for entry in entries:
        touched = set[Buffer]()
        if isinstance(entry, Issued | Launched):
            for work in entry.works:
                buffers = {one.buffer for one in (*work.reads, *work.writes)}
                touched |= buffers
                often |= {b for b in buffers if b.lane is not None and b.lane != work.lane}
            if isinstance(entry, Issued) and len(entry.works) > 1:
                inside |= touched
        often |= once & touched
        once |= touched
    return {b for b in inside - often if b in born and not names.given(("buffer", b.serial))}


def _touch(entry: Touched, names: Names) -> Op:
    made = HostWrite if entry.writes else HostRead
    return made(range=names.range(entry.access), site=entry.called.site, step=entry.called.step)


def _copy(work: Work, stream: str, names: Names, called: Called) -> Memcpy | None:
    """A copy of one range to one of the same size; any other is a kernel."""
    reads, writes = list(found(work.reads)), list(found(work.writes))
    if work.kind is not Kind.COPY or len(reads) != 1 or len(writes) != 1:
        return None
    if reads[0].length * reads[0].rows != writes[0].length * writes[0].rows:
        return None
    kind = {(True, True): CopyKind.D2D, (True, False): CopyKind.D2H, (False, True): CopyKind.H2D}[
        reads[0].buffer.mem is Mem.DEVICE, writes[0].buffer.mem is Mem.DEVICE
    ]
    src, dst = names.range(reads[0]), names.range(writes[0])
    return Memcpy(src=src, dst=dst, kind=kind, stream=stream, us=duration((work,)), site=called.site, step=called.step)


def _host(step: HostStep, names: Names, called: Called) -> list[Op]:
    site, number = called.site, called.step
    if not step.success:
        return []
    if step.kind in (HostKind.WORK, HostKind.STAGING):
        name = "host work" if step.kind is HostKind.WORK else "staging"
        return [HostWork(name=name, us=None if step.us is None else round(step.us, 6), site=site, step=number)]
    if step.kind is HostKind.DEVICE_SYNCHRONIZE:
        return [DeviceSync(site=site, step=number)]
    if step.mark is not None:
        asks = EventSync if step.kind is HostKind.EVENT_SYNCHRONIZE else EventQuery
        return [asks(event=names.event(step.mark), site=site, step=number)]
    if step.lane is not None:
        asked = StreamSync if step.kind is HostKind.STREAM_SYNCHRONIZE else StreamQuery
        return [asked(stream=names.stream(step.lane), site=site, step=number)]
    return []


def _wait_stream(entry: Entry, following: Entry | None, names: Names) -> StreamWaitStream | None:
    """`wait_stream`, which is a record and a wait of an event that nobody else has."""
    if not (isinstance(entry, Issued) and isinstance(following, Issued)):
        return None
    record, wait = entry.works[0], following.works[0]
    pair = record.kind is Kind.RECORD and wait.kind is Kind.WAIT and record.mark is wait.mark
    if not pair or record.mark is None or record.mark.shared or names.given(("event", record.mark.serial)):
        return None
    stream, on = names.stream(wait.lane), names.stream(record.lane)
    return StreamWaitStream(stream=stream, on=on, site=following.called.site, step=following.called.step)
