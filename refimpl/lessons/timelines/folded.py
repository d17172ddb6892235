"""Some turns of a recorded engine, with what one method queues on one stream folded into one op.

What orders the lanes is kept as it was recorded: events, waits, and the host's synchronizes. Of the accesses those are
kept that another lane could meet; memory that one lane alone touches, and its way through the allocator, is left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from refimpl.lessons.timelines.naming import COPY, OF_TURN, base
from refimpl.program import (
    EventQuery,
    EventRecord,
    EventSync,
    GraphLaunch,
    HostRead,
    HostWork,
    Launch,
    Memcpy,
    Node,
    Op,
    Program,
    Range,
    StreamWaitEvent,
    accesses,
    label,
    normalized,
    overlap,
)

HOST = "host"
HOST_WORK = "get_next_batch_to_run"
ASIDE, COPY_STREAM = "copy aside", "copy"
"""The copy of the results on the forward stream, before the one to the host on this stream."""
NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})
_UNNAMED = re.compile(r"(device|pinned|pageable|memory|block)\d+")
"""What a recording calls memory that nobody named."""
_NOT_DRAWN = ("tensor_alloc", "tensor_free", "host_write")
"""The allocator, and the host's writes into staging memory, which a ring of two keeps apart."""
_OF_TURN = re.compile(OF_TURN.format("(.*)", r"(\d+)"))


@dataclass(frozen=True)
class Turns:
    """Which part of a recording is kept.

    Args:
        first: the first turn of the loop.
        shown: how many turns.
        host_us: host work to put at the beginning of each turn, in microseconds.
        params: names of steps whose duration a reader may change.
    """

    first: int
    shown: int
    host_us: float
    params: Collection[str] = ()

    def number(self, op: Op) -> int | None:
        """The turn of an op, counted from 1; None where it is not shown."""
        if op.step is None or not self.first <= op.step < self.first + self.shown:
            return None
        return op.step - self.first + 1

    def renumbered(self, name: str) -> str:
        """The name of what one turn made, with the turn counted from the first that is shown; 0 is the one before."""
        found = _OF_TURN.fullmatch(name)
        return name if found is None else f"{found[1]} {int(found[2]) - self.first + 1}"


def folded(
    program: Program, regions: Sequence[str | None], turns: Turns, joined: Mapping[str, Sequence[str]] = NOTHING
) -> Program:
    """The turns as a program of their own, numbered from 1.

    A wait for what was recorded before the first of them is left out: nothing in the picture comes before it.

    Args:
        program: a recording of the engine whose ops carry the number of their turn.
        regions: of each op, the method that it was issued in (``Recording.regions``).
        turns: what to keep.
        joined: names of those for whom one buffer stands (``Recording.joined``).
    """
    told = zip(program.ops, regions, strict=True)
    inside = ((op, name) for op, name in told if op.op not in _NOT_DRAWN and turns.number(op) is not None)
    ops = list(_merged(_named(_known(inside), turns)))
    met = _met(ops)
    names = _names(ops, {r.buf for r in met}, turns, joined)
    drawn = [_renamed(op, names, met) for op in ops]
    buffers = {name: program.buffers[buf] for buf, name in names.items()}
    lanes = {getattr(op, at) for op in drawn for at in ("stream", "on") if hasattr(op, at)}
    streams = {name: stream for name, stream in program.streams.items() if name in lanes}
    return replace(program, ops=tuple(_with_host_work(drawn, turns.host_us)), buffers=buffers, streams=streams)


def _known(ops: Iterable[tuple[Op, str | None]]) -> Iterator[tuple[Op, str | None]]:
    """Without waits for what was recorded, and reads by the host of what was copied, before these ops."""
    recorded, written = set[str](), set[str]()
    for op, region in ops:
        if isinstance(op, EventRecord):
            recorded.add(op.event)
        if isinstance(op, GraphLaunch):
            recorded |= {node.record for node in op.nodes if node.record is not None}
        if isinstance(op, StreamWaitEvent | EventSync | EventQuery) and op.event not in recorded:
            continue
        if isinstance(op, HostRead) and op.range.buf not in written:
            continue
        written |= {r.buf for r in accesses(op)[1]}
        yield op, region


def _named(ops: Iterable[tuple[Op, str | None]], turns: Turns) -> Iterator[Op]:
    """Device work as launches that have the names of the engine's methods."""
    copied = dict[str, int]()
    for op, region in ops:
        number = turns.number(op)
        assert number is not None, "others were left out"
        name = region or _function(op)
        match op:
            case GraphLaunch():
                yield from _parts(op, name, number, turns)
            case Launch() | Memcpy():
                if name == COPY and op.stream != COPY_STREAM:
                    name = ASIDE
                elif name == COPY:
                    copied |= {r.buf: number for r in accesses(op)[1]}
                yield _launch(op, name, number, turns, *accesses(op))
            case HostRead():
                yield replace(op, name=f"{_read_by(op)} {copied.get(op.range.buf, number)}", step=number)
            case EventRecord() | StreamWaitEvent() | EventSync() | EventQuery():
                yield replace(op, event=turns.renumbered(op.event), step=number)
            case _:
                yield replace(op, step=number)


def _parts(op: GraphLaunch, name: str, number: int, turns: Turns) -> Iterator[Op]:
    """A graph as one kernel; one with events in it as what comes before each, the event, and what comes behind."""
    before: list[Node] = []
    for node in op.nodes:
        event = node.record if node.record is not None else node.wait
        if event is None:
            before.append(node)
            continue
        yield _part(op, before, f"metadata {name}", number, turns)
        made = EventRecord if node.record is not None else StreamWaitEvent
        yield made(event=turns.renumbered(event), stream=op.stream, step=number, site=op.site)
        before = []
    yield _part(op, before, name, number, turns)


def _part(op: GraphLaunch, nodes: Sequence[Node], name: str, number: int, turns: Turns) -> Launch:
    reads = tuple(r for node in nodes for r in node.reads)
    writes = tuple(r for node in nodes for r in node.writes)
    us = op.us if len(nodes) == len(op.nodes) else sum(node.us or 0.0 for node in nodes)
    return _launch(replace(op, us=us), name, number, turns, reads, writes)


def _launch(
    op: GraphLaunch | Launch | Memcpy,
    name: str,
    number: int,
    turns: Turns,
    reads: tuple[Range, ...],
    writes: tuple[Range, ...],
) -> Launch:
    """Any device work as a kernel."""
    param = name if name in turns.params else None
    return Launch(
        stream=op.stream,
        name=f"{name} {number}",
        reads=reads,
        writes=writes,
        us=op.us,
        step=number,
        param=param,
        site=op.site,
    )


def _function(op: Op) -> str:
    """The function of its call site, such as ``upload`` of ``"staging.py:52 (upload)"``."""
    return (op.site or "").rpartition("(")[2].rstrip(")") or op.op


def _read_by(op: HostRead) -> str:
    return _function(op).removesuffix("_blocking")


def _merged(ops: Iterable[Op]) -> Iterator[Op]:
    """Neighbours of one name on one stream as one op."""
    before: Op | None = None
    for op in ops:
        if (
            isinstance(before, Launch)
            and isinstance(op, Launch)
            and (before.name, before.stream) == (op.name, op.stream)
        ):
            before = replace(
                before,
                reads=(*before.reads, *op.reads),
                writes=(*before.writes, *op.writes),
                us=(before.us or 0.0) + (op.us or 0.0),
            )
            continue
        if before is not None:
            yield before
        before = op
    if before is not None:
        yield before


def _met(ops: Sequence[Op]) -> set[Range]:
    """Accesses that meet one of another lane, where one of the two writes; and all that the host reads."""
    by_buffer = defaultdict[str, dict[tuple[str, bool, Range], None]](dict)
    for op in ops:
        lane = getattr(op, "stream", HOST)
        for ranges, writes in zip(accesses(op), (False, True), strict=True):
            for r in ranges:
                by_buffer[r.buf][lane, writes, r] = None
    return {
        r
        for touched in by_buffer.values()
        if len({lane for lane, _, _ in touched}) > 1
        for lane, writes, r in touched
        if lane == HOST or any(lane != there and (writes or written) and overlap(r, q) for there, written, q in touched)
    }


def _written_by(ops: Iterable[Op]) -> dict[str, str]:
    """Memory, in the order in which it is first written, with the op that writes it first."""
    written = dict[str, str]()
    for op in ops:
        for r in accesses(op)[1]:
            written.setdefault(r.buf, label(op))
    return written


def _names(ops: Iterable[Op], kept: Set[str], turns: Turns, joined: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What memory is called: its name, counted from the first turn; or one after those who have it one after another,
    or after the op that writes it first. The second of a name is counted: ``"new_seq_lens (2)"``."""
    names, named = dict[str, str](), Counter[str]()
    for buf, by in _written_by(ops).items():
        if buf in kept:
            name = turns.renumbered(buf) if _UNNAMED.fullmatch(buf) is None else f"made by {by}"
            if buf in joined:
                owners = dict.fromkeys(map(base, joined[buf]))
                of_writer = [owner for owner in owners if owner.startswith(f"{base(by)}.")]
                name = " / ".join(of_writer or owners)
            named[name] += 1
            names[buf] = name if named[name] == 1 else f"{name} ({named[name]})"
    return names


def _renamed(op: Op, names: Mapping[str, str], met: Set[Range]) -> Op:
    """The op with those of its accesses alone that another lane meets, each of them once."""
    if isinstance(op, HostRead):
        return replace(op, range=op.range._replace(buf=names[op.range.buf]))
    if not isinstance(op, Launch):
        return op

    def kept(ranges: Iterable[Range]) -> tuple[Range, ...]:
        return tuple(dict.fromkeys(normalized(r._replace(buf=names[r.buf])) for r in ranges if r in met))

    return replace(op, reads=kept(op.reads), writes=kept(op.writes))


def _with_host_work(ops: Iterable[Op], us: float) -> Iterator[Op]:
    """Each turn begins with what the host does without a call."""
    number = None
    for op in ops:
        if op.step != number:
            number = op.step
            yield HostWork(name=f"{HOST_WORK} {number}", us=us, param=HOST, step=number)
        yield op
