"""Some steps of a recorded engine, with what one function queues on one stream folded into one op.

What orders the lanes is kept as it was recorded: events, waits, and the host's synchronizes. Of the accesses those are
kept that another lane could meet; memory that one lane alone touches, and its way through the allocator, is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from refimpl.program import (
    Buffer,
    EventRecord,
    EventSync,
    GraphLaunch,
    HostRead,
    HostWork,
    Launch,
    Mem,
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
PART_OF = {
    "alloc": "prepare_for_decode",
    "upload": "prepare_for_decode",
    "_assign": "prepare_for_decode",
    "load_rows": "load_batch",
    "process_batch_result_blocking": "process_batch_result",
}
"""What a function is drawn as; others go by their own names."""
EVENT_OF = {"publish": "publish_ready", "execute": "read_done", "copy_to_cpu": "copy_done"}
"""What an event is called, by the function that records it."""
BUFFER_OF = {"resolve_seq_lens": "seq_lens", "copy aside": "results", "copy_to_cpu": "results_cpu"}
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


def folded(program: Program, turns: Turns) -> Program:
    """The turns as a program of their own, numbered from 1.

    A wait for what was recorded before the first of them is left out: nothing in the picture precedes it.

    Args:
        program: a recording of the engine whose ops carry the number of their turn and their call sites.
        turns: what to keep.
    """
    recorded = _since_recorded(op for op in program.ops if op.op not in _NOT_DRAWN and _turn(op, turns) is not None)
    named = list(_merged(_named(recorded, turns)))
    shared = _shared(named)
    names = _Names(program, named)
    ops = [names.in_words(_narrowed(op, shared)) for op in named]
    buffers = {names.buffer(name): program.buffers[name] for name in shared}
    return replace(program, ops=tuple(_with_host_work(ops, turns)), buffers=buffers)


def _turn(op: Op, turns: Turns) -> int | None:
    """The turn's number in the picture, from 1; None outside."""
    if op.step is None or not turns.first <= op.step < turns.first + turns.shown:
        return None
    return op.step - turns.first + 1


def _function(op: Op) -> str:
    """The function of its call site, such as ``load_rows`` of ``"plain.py:158 (load_rows)"``."""
    return (op.site or "").rpartition("(")[2].rstrip(")")


def _since_recorded(ops: Iterable[Op]) -> Iterator[Op]:
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
    """Device work as launches with the names of the engine's functions; a graph by its own, with all that it touches."""
    copies: dict[str, int] = {}
    pending: list[Launch] = []
    graphs: dict[int, int] = {}
    for op in ops:
        turn = _turn(op, turns)
        assert turn is not None, "others were left out"
        match op:
            case GraphLaunch():
                name = turns.graphs[graphs.get(turn, 0)]
                graphs[turn] = graphs.get(turn, 0) + 1
                yield from (replace(load, name=f"load_batch {name} {turn}") for load in pending)
                pending = []
                yield _launch(op, f"{name} {turn}", turn, param=name)
            case Launch() | Memcpy():
                name = PART_OF.get(_function(op), _function(op))
                launch = _launch(op, f"{name} {turn}", turn)
                if name == "copy_to_cpu" and launch.stream == "copy":
                    copies |= {r.buf: turn for r in launch.writes}
                elif name == "copy_to_cpu":
                    launch = replace(launch, name=f"copy aside {turn}")
                yield launch
            case HostRead():
                name = PART_OF.get(_function(op), _function(op))
                yield replace(op, name=f"{name} {copies[op.range.buf]}", step=turn)
            case _:
                yield replace(op, step=turn)
