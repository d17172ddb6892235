"""Some steps of a recorded engine, with what one function queues on one stream folded into one op.

What orders the lanes is kept as it was recorded: events, waits, and the host's synchronizes. Of the accesses those are
kept that another lane could meet; memory that one lane alone touches, and its way through the allocator, is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from refimpl.program import (
    EventRecord,
    EventSync,
    GraphLaunch,
    HostRead,
    HostWork,
    Launch,
    Memcpy,
    Op,
    Program,
    Range,
    StreamWaitEvent,
    accesses,
    normalized,
)

HOST = "host"
HOST_WORK = "get_next_batch_to_run"
COPY, ASIDE, COPY_STREAM = "copy_to_cpu", "copy aside", "copy"
"""The copy to the host, the one before it on the forward stream, and the stream of the former."""
LOAD = "load_batch"
PART_OF = {
    "alloc": "prepare_for_decode",
    "upload": "prepare_for_decode",
    "_assign": "prepare_for_decode",
    "assign_rows": "prepare_for_decode",
    "load_rows": LOAD,
    "process_batch_result_blocking": "process_batch_result",
}
"""What a function is drawn as; others go by their own names."""
EVENT_OF = {"publish": "publish_ready", "execute": "read_done", COPY: "copy_done"}
"""What an event is called, by the function that records it."""
BUFFER_OF = {"resolve_seq_lens": "seq_lens", ASIDE: "results", COPY: "results_cpu"}
"""What memory without a name is called, by the op that writes it."""
_NOT_DRAWN = ("tensor_alloc", "tensor_free", "host_write")
"""The allocator, and the host's writes into staging memory, which a ring of two keeps apart."""


@dataclass(frozen=True)
class Turns:
    """Which part of a recording is kept.

    Args:
        first: the first turn of the loop.
        shown: how many turns.
        graphs: names of a step's graphs, in the order of their replays.
        host_us: host work to put at the beginning of each turn, in microseconds.
    """

    first: int
    shown: int
    graphs: Sequence[str]
    host_us: float

    def number(self, op: Op) -> int | None:
        """The turn of an op, counted from 1; None where it is not shown."""
        if op.step is None or not self.first <= op.step < self.first + self.shown:
            return None
        return op.step - self.first + 1


def folded(program: Program, turns: Turns) -> Program:
    """The turns as a program of their own, numbered from 1.

    A wait for what was recorded before the first of them is left out: nothing in the picture comes before it.

    Args:
        program: a recording of the engine whose ops carry the number of their turn and their call sites.
        turns: what to keep.
    """
    inside = (op for op in program.ops if op.op not in _NOT_DRAWN and turns.number(op) is not None)
    ops = list(_merged(_named(_known(inside), turns)))
    shared = _shared(ops)
    names = _names(ops, shared)
    drawn = [_renamed(op, names) for op in ops]
    buffers = {name: program.buffers[buf] for buf, name in names.items()}
    return replace(program, ops=tuple(_with_host_work(drawn, turns.host_us)), buffers=buffers)


def _known(ops: Iterable[Op]) -> Iterator[Op]:
    """Without waits for what was recorded, and reads by the host of what was copied, before these ops."""
    recorded, written = set[str](), set[str]()
    for op in ops:
        if isinstance(op, EventRecord):
            recorded.add(op.event)
        if isinstance(op, StreamWaitEvent | EventSync) and op.event not in recorded:
            continue
        if isinstance(op, HostRead) and op.range.buf not in written:
            continue
        written |= {r.buf for r in accesses(op)[1]}
        yield op


def _named(ops: Iterable[Op], turns: Turns) -> Iterator[Op]:
    """Device work as launches that have the names of the engine's functions; a graph has its own."""
    replayed, copied, events = dict[int, int](), dict[str, int](), dict[str, str]()
    for op in ops:
        number = turns.number(op)
        assert number is not None, "others were left out"
        function = _function(op)
        name = PART_OF.get(function, function)
        coming = turns.graphs[replayed.get(number, 0) % len(turns.graphs)]
        match op:
            case GraphLaunch():
                replayed[number] = replayed.get(number, 0) + 1
                yield _launch(op, f"{coming} {number}", number, coming)
            case Launch() | Memcpy():
                if name == LOAD:
                    name = f"{LOAD} {coming}"
                elif name == COPY and op.stream != COPY_STREAM:
                    name = ASIDE
                elif name == COPY:
                    copied |= {r.buf: number for r in accesses(op)[1]}
                yield _launch(op, f"{name} {number}", number)
            case HostRead():
                yield replace(op, name=f"{name} {copied[op.range.buf]}", step=number)
            case EventRecord():
                events.setdefault(op.event, _event_name(function, events))
                yield replace(op, event=events[op.event], step=number)
            case StreamWaitEvent() | EventSync():
                yield replace(op, event=events[op.event], step=number)
            case _:
                yield replace(op, step=number)


def _function(op: Op) -> str:
    """The function of its call site, such as ``load_rows`` of ``"plain.py:158 (load_rows)"``."""
    return (op.site or "").rpartition("(")[2].rstrip(")")


def _event_name(function: str, taken: Mapping[str, str]) -> str:
    """The name of an event by who records it; those of the ring of results are told apart by a number."""
    name = EVENT_OF[function]
    return f"{name} {sum(one.startswith(name) for one in taken.values())}" if function == COPY else name


def _launch(op: GraphLaunch | Launch | Memcpy, name: str, number: int, param: str | None = None) -> Launch:
    """Any device work as a kernel; of a graph with all that its nodes touch."""
    reads, writes = accesses(op)
    return Launch(
        stream=op.stream, name=name, reads=reads, writes=writes, us=op.us, step=number, param=param, site=op.site
    )


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


def _shared(ops: Iterable[Op]) -> set[str]:
    """Memory that is written, and touched on more than one lane."""
    lanes, written = defaultdict[str, set[str]](set), set[str]()
    for op in ops:
        reads, writes = accesses(op)
        written |= {r.buf for r in writes}
        for r in (*reads, *writes):
            lanes[r.buf].add(getattr(op, "stream", HOST))
    return {buf for buf in written if len(lanes[buf]) > 1}


def _names(ops: Iterable[Op], shared: Set[str]) -> dict[str, str]:
    """A name for each shared buffer: its own, or one after the op that writes it first."""
    names = dict[str, str]()
    for op in ops:
        for r in accesses(op)[1]:
            if r.buf in shared and r.buf not in names:
                stem = BUFFER_OF.get(getattr(op, "name", "").rpartition(" ")[0])
                made = sum(name.rpartition(" ")[0] == stem for name in names.values())
                names[r.buf] = r.buf if stem is None else f"{stem} {made}"
    return names


def _renamed(op: Op, names: Mapping[str, str]) -> Op:
    """The op with its accesses to shared memory alone, each of them once."""
    if isinstance(op, HostRead):
        return replace(op, range=op.range._replace(buf=names[op.range.buf]))
    if not isinstance(op, Launch):
        return op

    def kept(ranges: Iterable[Range]) -> tuple[Range, ...]:
        return tuple(dict.fromkeys(normalized(r._replace(buf=names[r.buf])) for r in ranges if r.buf in names))

    return replace(op, reads=kept(op.reads), writes=kept(op.writes))


def _with_host_work(ops: Iterable[Op], us: float) -> Iterator[Op]:
    """Each turn begins with what the host does without a call."""
    number = None
    for op in ops:
        if op.step != number:
            number = op.step
            yield HostWork(name=f"{HOST_WORK} {number}", us=us, param=HOST, step=number)
        yield op
