"""Judging an answer that adds fences to a stream program: same work, no race, and nobody stands still for nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from refimpl.order import EdgeKind, Explanation, Hazard, Race, check, explain
from refimpl.program import (
    DeviceSync,
    EventQuery,
    EventRecord,
    EventSync,
    Op,
    Program,
    ProgramError,
    Range,
    StreamQuery,
    StreamSync,
    StreamWaitEvent,
    StreamWaitStream,
    accesses,
    label,
)

BLOCKING = (EventSync, StreamSync, DeviceSync, EventQuery, StreamQuery)
FENCES = (EventRecord, StreamWaitEvent, StreamWaitStream, *BLOCKING)


MOST_OPS = 10_000
"""More of an answer is not looked at: a generator need not end."""


class Rejected(Exception):
    """An answer has not the properties asked for.

    Args:
        words: one or a few sentences for the reader.
    """

    def __init__(self, words: str) -> None:
        self.words = words
        super().__init__(words)


@dataclass(frozen=True)
class Fenced:
    """A program with the fences that an answer added, and where they stand."""

    program: Program
    added: tuple[int, ...]

    def without(self, index: int) -> Program:
        """The program without one of its ops."""
        return replace(self.program, ops=tuple(op for k, op in enumerate(self.program.ops) if k != index))


def fenced(given: Program, answer: Any) -> Fenced:
    """What an answer made of the ops of ``given``: a function of them, or the ops themselves.

    Raises:
        Rejected: not ops, not the same work in the same order, or a fence that names what the program does not have.
    """
    ops = _ops(answer(list(given.ops)) if callable(answer) else answer)
    rest, added = list(given.ops), []
    for index, op in enumerate(ops):
        if rest and op == rest[0]:
            rest.pop(0)
        elif isinstance(op, FENCES):
            added.append(index)
        else:
            there = f"op {index}, {label(op)}, stands where the program had {_next(rest)}"
            raise Rejected(f"{there}: leave its ops in their order and add fences only.")
    if rest:
        raise Rejected(
            f"{_next(rest)} is missing or has moved: leave the program's ops in their order and add fences only."
        )
    try:
        return Fenced(replace(given, ops=ops), tuple(added))
    except ProgramError as error:
        raise Rejected(f"the fences do not fit the program: {error}.") from None


def _ops(answer: Any) -> tuple[Op, ...]:
    if isinstance(answer, Program):
        return answer.ops
    if answer is None:
        raise Rejected(
            "the answer gives nothing back: let it return the ops, in the order in which the host issues them."
        )
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise Rejected(f"the answer gives {type(answer).__name__}: let it return a list of ops.")
    ops = tuple(islice(answer, MOST_OPS))
    for index, op in enumerate(ops):
        if not isinstance(op, Op):
            hint = " (an instance, such as `StreamWaitEvent(event=…, stream=…)`)" if isinstance(op, type) else ""
            raise Rejected(f"item {index} of the answer is {op!r}: each must be an op{hint}.".replace("`", ""))
    return ops


def _next(rest: Sequence[Op]) -> str:
    return f"{label(rest[0])}{_at_step(rest[0])}" if rest else "its end"


def refuse_races(answer: Fenced) -> None:
    """Raises unless no order that the rules allow lets two accesses race or anything stand still for good."""
    report = check(answer.program)
    if report.deadlock is not None:
        raise Rejected(f"the program stands still: {report.deadlock.words}.")
    if not report.races:
        return
    words = [race_words(report.races[0])]
    words += [
        f"{name(answer.program, lint.op)} waits for nothing: its event was never recorded before the call."
        for lint in report.lints
        if lint.rule == "wait-unrecorded"
    ][:1]
    if len(report.races) > 1:
        more = len(report.races) - 1
        words.append(f"{more} more {'pair races' if more == 1 else 'pairs race'}.")
    raise Rejected(" ".join(words))


def race_words(race: Race) -> str:
    """A race in a sentence; it names both ops, and leaves the edge to the reader."""
    first, second = (f"{touch.name} on {touch.lane}" for touch in (race.first, race.second))
    match race.kind:
        case Hazard.RAW:
            return f"RAW on {race.bytes.buf}: {second} may read before {first} has written."
        case Hazard.WAR:
            return f"WAR on {race.bytes.buf}: {second} may overwrite before {first} has read."
        case _:
            return f"{race.kind} on {race.bytes.buf}: {first} and {second} may come in either order."


def refuse_order(answer: Fenced, first: str, second: str, why: str) -> None:
    """Raises if the answer makes ``second`` come after ``first``, which the task does not ask for.

    Args:
        first, second: names of ops; each must be the program's only one of that name.
        why: what that costs.
    """
    found = explain(answer.program, _index(answer.program, first), _index(answer.program, second))
    if found.ordered and found.second == _index(answer.program, second):
        raise Rejected(f"{_culprit(answer, found)} makes {second} come after {first}: {why}.")


def refuse_idle(answer: Fenced) -> None:
    """Raises if one of the added fences could go without a race: it is not the least."""
    for index in answer.added:
        if not check(answer.without(index)).races:
            following = answer.program.ops[index + 1 : index + 2]
            place = f", put before {_next(following)}," if following else ""
            raise Rejected(f"{name(answer.program, index)}{place} adds nothing: the program is as safe without it.")


def inserted(
    name: str, *fences: Op, first: int = 0, last: int = 99, after: bool = False
) -> Callable[[list[Op]], list[Op]]:
    """An answer that puts ``fences`` before (or after) each op whose name begins with ``name``.

    Args:
        name: how the name begins.
        fences: the ops to put there.
        first, last: the steps in which to do so; an op without a step counts as step 0.
        after: put them behind the op.
    """

    def answer(ops: list[Op]) -> list[Op]:
        out: list[Op] = []
        for op in ops:
            here = fences if label(op).startswith(name) and first <= (op.step or 0) <= last else ()
            out += [op, *here] if after else [*here, op]
        return out

    return answer


def name(program: Program, index: int) -> str:
    """An op in words, such as ``op 10, wait(verify_done) on schedule at step 1``."""
    op = program.ops[index]
    lane = getattr(op, "stream", None)
    where = "" if lane is None or isinstance(op, BLOCKING) else f" on {lane}"
    return f"op {index}, {label(op)}{where}{_at_step(op)}"


def _at_step(op: Op) -> str:
    return "" if op.step is None or str(op.step) in label(op).split() else f" at step {op.step}"


def listing(program: Program) -> str:
    """The ops of a program in issue order: number, lane, name, and what each reads and writes."""
    rows = [
        (str(k), getattr(op, "stream", "host") if not isinstance(op, BLOCKING) else "host", label(op) + _touched(op))
        for k, op in enumerate(program.ops)
    ]
    lane_width = max((len(lane) for _, lane, _ in rows), default=0)
    return "\n".join(f"{number:>3}  {lane:{lane_width}}  {what}" for number, lane, what in rows)


def _touched(op: Op) -> str:
    reads, writes = accesses(op)
    parts = [
        f"{verb} {', '.join(_bytes(r) for r in ranges)}"
        for verb, ranges in (("reads", reads), ("writes", writes))
        if ranges
    ]
    return ": " + "; ".join(parts) if parts else ""


def _bytes(r: Range) -> str:
    return f"{r.buf}[{r.off}:{r.off + r.len}]" if r.off else r.buf


def _index(program: Program, wanted: str) -> int:
    (index,) = (k for k, op in enumerate(program.ops) if label(op) == wanted)
    return index


def _culprit(answer: Fenced, found: Explanation) -> str:
    """The added op on the path; the last that the host blocks in, if there is one."""
    on_path = list(_ops_on(found))
    blocking = [op for op, blocks in on_path if blocks and op in answer.added]
    added = [op for op, _ in on_path if op in answer.added]
    at = (blocking or added or [found.second])[-1]
    return name(answer.program, at)


def _ops_on(found: Explanation) -> Iterator[tuple[int, bool]]:
    for link in found.path:
        yield link.after.op, link.kind is EdgeKind.SYNCHRONIZE
