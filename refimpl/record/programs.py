"""From entries to a stream program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from refimpl.device.simulator.buffers import Access, Buffer, Memory
from refimpl.device.simulator.ops import HostKind, HostStep, Kind
from refimpl.device.simulator.ops import Op as Work
from refimpl.program import (
    CopyKind,
    DeviceSync,
    EventQuery,
    EventRecord,
    EventSync,
    GraphLaunch,
    HostRead,
    HostWork,
    HostWrite,
    Launch,
    Memcpy,
    Node,
    Op,
    Range,
    StreamQuery,
    StreamSync,
    StreamWaitEvent,
    StreamWaitStream,
)
from refimpl.record.entries import Called, Entry, Issued, Launched, Stepped, Touched
from refimpl.record.names import Names
from refimpl.record.tap import one_region


def lower(entries: Sequence[Entry], names: Names, allocated: set[Buffer]) -> list[tuple[Op, Entry]]:
    """The ops of the program, each with the entry it comes from.

    Args:
        entries: What was noted.
        names: Takes the names that are not given.
        allocated: Memory allocated meanwhile; what one op of several parts alone touches of it is left out.
    """
    private = _private(entries, names, allocated)
    lowered: list[tuple[Op, Entry]] = []
    skip = False
    for entry, following in zip_longest(entries, entries[1:]):
        if skip:
            skip = False
            continue
        joined = _wait_stream(entry, following, names)
        if joined is not None and following is not None:
            lowered.append((joined, following))
            skip = True
        else:
            lowered += [(op, entry) for op in _lower(entry, names, private)]
    return lowered


def _lower(entry: Entry, names: Names, private: set[Buffer]) -> list[Op]:
    site, step = entry.called.site, entry.called.step
    if isinstance(entry, Touched):
        touched = names.range(entry.access)
        return [
            HostWrite(range=touched, site=site, step=step)
            if entry.writes
            else HostRead(range=touched, site=site, step=step)
        ]
    if isinstance(entry, Stepped):
        return _host(entry.step, names, entry.called)
    if isinstance(entry, Launched):
        return [_graph(entry, names)]
    first = entry.ops[0]
    stream = names.stream(first.queue.id)
    if first.kind is Kind.RECORD:
        return [EventRecord(event=names.event(first.event), stream=stream, site=site, step=step)]
    if first.kind is Kind.WAIT:
        return [StreamWaitEvent(event=names.event(first.event), stream=stream, site=site, step=step)]
    if (
        len(entry.ops) == 1
        and first.kind is Kind.COPY
        and (copy := _copy(first, stream, names, entry.called)) is not None
    ):
        return [copy]
    reads, writes = _merged(entry.ops, private)
    us = _us(entry.ops)
    name = first.region.name if first.region is not None else first.name
    return [
        Launch(
            stream=stream,
            name=name,
            reads=_ranges(reads, names),
            writes=_ranges(writes, names),
            us=us,
            site=site,
            step=step,
        )
    ]


def _private(entries: Iterable[Entry], names: Names, allocated: set[Buffer]) -> set[Buffer]:
    """Memory that is new, has no given name and occurs in one entry."""
    once, often = set[Buffer](), set[Buffer]()
    for entry in entries:
        touched = set[Buffer]()
        if isinstance(entry, (Issued, Launched)):
            touched = {access.buffer for op in entry.ops for access in (*op.reads, *op.writes)}
        often |= once & touched
        once |= touched
    return {b for b in once - often if b in allocated and not names.given(("buffer", b.serial))}


def _merged(ops: Sequence[Work], private: set[Buffer]) -> tuple[list[Access], list[Access]]:
    """What several ops read from outside and leave behind."""
    reads, writes = list[Access](), list[Access]()
    for op in ops:
        reads += [access for access in op.reads if access not in writes and access not in reads]
        writes += [access for access in op.writes if access not in writes]
    if len(ops) == 1:
        return reads, writes
    return [a for a in reads if a.buffer not in private], [a for a in writes if a.buffer not in private]


def _us(ops: Iterable[Work]) -> float:
    """Duration of several ops, without the last digits that differences of large times leave."""
    return round(sum(op.us for op in ops), 6)


def _ranges(accesses: Iterable[Access], names: Names) -> tuple[Range, ...]:
    return tuple(names.range(access) for access in accesses)


def _copy(op: Work, stream: str, names: Names, called: Called) -> Memcpy | None:
    """A copy of one range to one of the same size; any other is a kernel."""
    if (
        len(op.reads) != 1
        or len(op.writes) != 1
        or op.reads[0].length * op.reads[0].rows != op.writes[0].length * op.writes[0].rows
    ):
        return None
    kind = {(True, True): CopyKind.D2D, (True, False): CopyKind.D2H, (False, True): CopyKind.H2D}[
        op.reads[0].buffer.memory is Memory.DEVICE, op.writes[0].buffer.memory is Memory.DEVICE
    ]
    src, dst = names.range(op.reads[0]), names.range(op.writes[0])
    return Memcpy(src=src, dst=dst, kind=kind, stream=stream, us=_us((op,)), site=called.site, step=called.step)


def _host(step: HostStep, names: Names, called: Called) -> list[Op]:
    site, number = called.site, called.step
    if not step.success:
        return []
    if step.kind in (HostKind.WORK, HostKind.STAGING):
        name = "host work" if step.kind is HostKind.WORK else "staging"
        return [HostWork(name=name, us=round(step.end_us - step.start_us, 6), site=site, step=number)]
    if step.kind is HostKind.DEVICE_SYNCHRONIZE:
        return [DeviceSync(site=site, step=number)]
    if step.kind in (HostKind.EVENT_SYNCHRONIZE, HostKind.EVENT_QUERY):
        event = names.event(step.event)
        waits = step.kind is HostKind.EVENT_SYNCHRONIZE
        return [
            EventSync(event=event, site=site, step=number) if waits else EventQuery(event=event, site=site, step=number)
        ]
    stream = names.stream(step.queue.id if step.queue is not None else 0)
    waits = step.kind is HostKind.STREAM_SYNCHRONIZE
    return [
        StreamSync(stream=stream, site=site, step=number)
        if waits
        else StreamQuery(stream=stream, site=site, step=number)
    ]


def _wait_stream(entry: Entry, following: Entry | None, names: Names) -> StreamWaitStream | None:
    """`wait_stream`, which is a record and a wait of an event that nobody else has."""
    if not (isinstance(entry, Issued) and isinstance(following, Issued)):
        return None
    record, wait = entry.ops[0], following.ops[0]
    pair = record.kind is Kind.RECORD and wait.kind is Kind.WAIT and record.event is wait.event
    if not pair or record.event is None or record.event.shared or names.given(("event", id(record.event))):
        return None
    stream, on = names.stream(wait.queue.id), names.stream(record.queue.id)
    return StreamWaitStream(stream=stream, on=on, site=following.called.site, step=following.called.step)


def _graph(entry: Launched, names: Names) -> GraphLaunch:
    """A launch with its nodes; nodes of one cost region in a row are one node, marks inside the graph are edges."""
    groups: list[list[Work]] = []
    for op in entry.ops:
        if groups and one_region(groups[-1][-1], op):
            groups[-1].append(op)
        else:
            groups.append([op])
    group_of = {op: index for index, group in enumerate(groups) for op in group}
    before = dict(zip(entry.ops, entry.after, strict=True))
    deps = [
        sorted({group_of[b] for op in group for b in before[op] if b in group_of} - {i})
        for i, group in enumerate(groups)
    ]
    shown = {i: _node_name(group) for i, group in enumerate(groups) if not _is_edge(group[0])}
    labels = {i: name if list(shown.values()).count(name) == 1 else f"{name} {i}" for i, name in shown.items()}

    def sources(index: int) -> list[int]:
        return sorted({s for d in deps[index] for s in ([d] if d in labels else sources(d))})

    nodes = tuple(_node(groups[i], label, tuple(labels[s] for s in sources(i)), names) for i, label in labels.items())
    regions = {op.region.name for op in entry.ops if op.region is not None}
    name = names.graph(entry.capture, regions.pop() if len(regions) == 1 else "graph")
    called = entry.called
    us = _us(entry.ops)
    return GraphLaunch(
        stream=names.stream(entry.queue.id), nodes=nodes, name=name, us=us, site=called.site, step=called.step
    )


def _is_edge(op: Work) -> bool:
    return op.kind in (Kind.RECORD, Kind.WAIT) and not (op.event is not None and op.event.external)


def _node_name(group: Sequence[Work]) -> str:
    region = group[0].region
    return region.name if region is not None else group[0].name


def _node(group: Sequence[Work], label: str, deps: tuple[str, ...], names: Names) -> Node:
    first = group[0]
    if first.kind in (Kind.RECORD, Kind.WAIT):
        event = names.event(first.event)
        return (
            Node(name=label, record=event, deps=deps)
            if first.kind is Kind.RECORD
            else Node(name=label, wait=event, deps=deps)
        )
    reads, writes = _merged(group, set())
    return Node(name=label, reads=_ranges(reads, names), writes=_ranges(writes, names), deps=deps, us=_us(group))
