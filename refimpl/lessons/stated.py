"""Recorded programs of the engine, with ops stated beside those that were recorded: what if somebody did this, too?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from refimpl.lessons.timelines.naming import base
from refimpl.program import (
    EventRecord,
    Launch,
    Op,
    Program,
    Stream,
    StreamSync,
    StreamWaitEvent,
    StreamWaitValue,
    StreamWriteValue,
    label,
)

PRIVATE, COPIER = "private d2h", "handing on"
PREPARES, LOADS = "resolve_seq_lens", "load_batch verify"
"""Ops of a turn: schedule takes the lengths; forward reads the tables for its verify."""
VERIFY_DONE, READ_DONE = "verify_done", "read_done"


def with_private_reader(program: Program, waits: bool) -> Program:
    """A stream of its own reads the lengths too, behind the schedule stream's read of them; then the host waits for it.

    Args:
        program: folded, of an engine whose draft input carries the lengths.
        waits: whether the private stream waits for the event for which schedule waits.
    """

    def more(op: Op, before: Sequence[Op]) -> Iterator[Op]:
        if base(label(op)) != PREPARES or not isinstance(op, Launch) or not op.reads:
            return
        event = next((event for event in map(_awaited, reversed(before)) if event is not None), None)
        if event is None:
            return
        if waits:
            yield StreamWaitEvent(event=event, stream=PRIVATE, step=op.step)
        yield Launch(stream=PRIVATE, name=label(op).replace(PREPARES, "pull lengths"), reads=op.reads, step=op.step)
        yield StreamSync(stream=PRIVATE, step=op.step)

    return _behind(_with_stream(program, PRIVATE), more)


def with_item(program: Program) -> Program:
    """The host reads one number of the schedule stream in each turn, as ``.item()`` does, before it launches."""

    def more(op: Op, before: Sequence[Op]) -> Iterator[Op]:
        if base(label(op)) == PREPARES:
            yield StreamSync(stream="schedule", step=op.step)

    return _behind(program, more)


def handed_on(program: Program, early: bool) -> Program:
    """A copier waits for ``read_done`` of each turn and then hands something on, which the next turn's verify needs.

    Args:
        program: folded, of an engine that records one event ``read_done`` again in each turn.
        early: whether the copier's wait is called right behind its turn's record, and not behind that of the next one.
    """
    ops: list[Op] = []
    owed: list[Op] = []
    turn = 0
    for op in program.ops:
        if base(label(op)) == LOADS and turn > 0:
            ops.append(StreamWaitValue(stream="forward", flag=_flag(turn - 1), step=op.step))
        ops.append(op)
        if isinstance(op, EventRecord) and op.event == READ_DONE:
            mine = _handing_on(turn, op.step)
            ops += mine if early else owed
            owed = [] if early else mine
            turn += 1
    return replace(_with_stream(program, COPIER), ops=(*ops, *owed))


def unstated(program: Program, name: str, buffer: str) -> Program:
    """The program with a read kept quiet: ops of this name state nothing of the buffer.

    Args:
        program: folded.
        name: of the ops, without the number of their turn.
        buffer: which they read all the same.
    """

    def of(op: Op) -> Op:
        if not isinstance(op, Launch) or base(op.name) != name:
            return op
        return replace(op, reads=tuple(one for one in op.reads if one.buf != buffer))

    return replace(program, ops=tuple(map(of, program.ops)))


def _awaited(op: Op) -> str | None:
    """The event of a wait of schedule's for the lengths; None for any other op."""
    waits = isinstance(op, StreamWaitEvent) and op.stream == "schedule" and base(op.event) == VERIFY_DONE
    return op.event if isinstance(op, StreamWaitEvent) and waits else None


def _handing_on(turn: int, step: int | None) -> list[Op]:
    return [
        StreamWaitEvent(event=READ_DONE, stream=COPIER, step=step),
        Launch(stream=COPIER, name=f"hand on {turn}", step=step),
        StreamWriteValue(stream=COPIER, flag=_flag(turn), step=step),
    ]


def _flag(turn: int) -> str:
    return f"handed on {turn}"


def _with_stream(program: Program, name: str) -> Program:
    return replace(program, streams={**program.streams, name: Stream()})


def _behind(program: Program, more: Callable[[Op, Sequence[Op]], Iterable[Op]]) -> Program:
    """The program with ops behind some of its own; ``more`` is given an op and those that were issued before it."""
    ops = [(op, *more(op, program.ops[:at])) for at, op in enumerate(program.ops)]
    return replace(program, ops=tuple(chain.from_iterable(ops)))
