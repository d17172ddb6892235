"""What follows from a recorded program: the order that its fences make, edge by edge; or the shortest order in which it
goes wrong, with the values that come out.

Everything here is computed from the program. What it says in words names ops as the timeline does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from refimpl.lessons.lines import wrapped
from refimpl.lessons.timelines.naming import base
from refimpl.order import EdgeKind, Explanation, Fence, Race, check, drop, explain, fences_of
from refimpl.program import (
    EventQuery,
    EventRecord,
    EventSync,
    Op,
    Program,
    StreamWaitEvent,
    StreamWaitStream,
    UserError,
    accesses,
    label,
    overlap,
    program_to_json,
)

_OBVIOUS = (EdgeKind.FIFO, EdgeKind.HOST)
"""Edges that are there without a fence: a lane's own order."""


@dataclass(frozen=True)
class Proof:
    """Why one op comes before another in every order, and that no two accesses of the program are left unordered.

    Args:
        first, second: the ops, as the timeline names them.
        edges: of the happens-before path from the one to the other, in words; those within a lane are left out.
        pairs: how many pairs of ops of different lanes use the same bytes, one of them writing: all are ordered.
    """

    first: str
    second: str
    edges: tuple[str, ...]
    pairs: int

    def __str__(self) -> str:
        lines = [f"{self.first} comes before {self.second} in every order:"]
        lines += [f"  {number}. {edge}" for number, edge in enumerate(self.edges, 1)]
        lines += [f"So are all {self.pairs} pairs of ops of two lanes that use the same bytes ordered."]
        return "\n".join(map(wrapped, lines))


@dataclass(frozen=True)
class Counterexample:
    """The shortest order that shows a race, and what comes of it.

    Args:
        kind, buffer: the hazard.
        first, second: the two ops, as the timeline names them: the second overtakes the first.
        schedule: the order's id, which the simulated device replays.
        steps: it in words, what one lane does in a row together.
        wrong: what is read or left behind wrong, beside what it should be; empty where all of it is written again.
    """

    kind: str
    buffer: str
    first: str
    second: str
    schedule: str
    steps: tuple[str, ...]
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.kind} on {self.buffer}: {self.second} can come before {self.first}, as in {self.schedule}:"]
        lines += [f"  {step}" for step in self.steps]
        lines += self.wrong or ("Every value is right all the same: it is written again.",)
        return "\n".join(map(wrapped, lines))


def proof(program: Program, first: str, second: str) -> Proof:
    """Why an op comes before another, in a program in which no two accesses race.

    Args:
        program: folded.
        first, second: names of ops, such as ``"publish 1"`` and ``"resolve_seq_lens 2"``.

    Raises:
        UserError: no such op; or nothing orders them, or a race elsewhere: then there is no proof.
    """
    races = check(program).races
    if races:
        raise UserError(f"{program.id} has a race, so there is no proof: {races[0]}")
    found = explain(program, _index(program, first), _index(program, second))
    if not found.ordered:
        raise UserError(f"{program.id}: nothing orders {first!r} and {second!r}")
    return Proof(first, second, _edges(program, found), _conflicting_pairs(program))


def races(program: Program, buffer: str | None = None, second: str | None = None) -> tuple[Race, ...]:
    """The races of a program, in the order of issue.

    Args:
        program: folded.
        buffer: those on this one alone, by its name with or without a number; None for all.
        second: those alone whose later op has this name; None for all.
    """
    return tuple(
        race
        for race in check(program).races
        if (buffer is None or buffer in (race.bytes.buf, *map(base, race.bytes.buf.split(" / "))))
        and (second is None or second == label(program.ops[race.second.op]))
    )


def counterexample(program: Program, buffer: str | None = None, second: str | None = None) -> Counterexample:
    """The shortest order that shows a race, with the values that come out when ``sim`` replays it.

    Of several races the first is taken whose order changes what is read. Computed in a process of its own: one that
    uses a GPU cannot hold ``sim``.

    Args:
        program, buffer, second: as of :func:`races`.

    Raises:
        UserError: the program has no such race.
        RuntimeError: the process failed.
    """
    if not races(program, buffer, second):
        where = ("" if buffer is None else f" on {buffer}") + ("" if second is None else f" with {second}")
        raise UserError(f"{program.id} has no race{where}, so there is no counterexample")
    given = json.dumps({"program": program_to_json(program), "buffer": buffer, "second": second})
    command = [sys.executable, "-m", "refimpl.lessons.timelines.replayed"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"replaying {program.id} failed: {(done.stderr.strip().splitlines() or ['no words'])[-1]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return Counterexample(**{**found, "steps": tuple(found["steps"]), "wrong": tuple(found["wrong"])})


def fences_by_name(program: Program) -> Mapping[str, tuple[Fence, ...]]:
    """The waits and synchronizes of a program, those of one place in the code together, such as ``"schedule waits for
    publish_ready"``; a record is no fence without its wait."""
    named = [(_fence_name(program.ops[fence.op]), fence) for fence in fences_of(program)]
    ordered = sorted((one for one in named if one[0] is not None), key=lambda one: str(one[0]))
    return {str(name): tuple(fence for _, fence in same) for name, same in groupby(ordered, key=lambda one: one[0])}


def without_each(program: Program) -> Mapping[str, tuple[Race, ...]]:
    """By name of each fence, the races that leaving it out lets in, in all turns; none: it is redundant here."""
    return {name: check(drop(program, *fences)).races for name, fences in fences_by_name(program).items()}


def without(program: Program, names: Iterable[str]) -> Program:
    """The program without the fences of these names."""
    named = fences_by_name(program)
    unknown = [name for name in names if name not in named]
    if unknown:
        raise UserError(f"{program.id} has no fence {unknown[0]!r}: use some of {', '.join(named)}")
    return drop(program, *(fence for name in names for fence in named[name]))


def _fence_name(op: Op) -> str | None:
    match op:
        case StreamWaitEvent():
            return f"{op.stream} waits for {base(op.event)}"
        case StreamWaitStream():
            return f"{op.stream} waits for {op.on}"
        case EventSync() | EventQuery():
            return f"host synchronizes with {base(op.event)}"
        case EventRecord():
            return None
        case _:
            return label(op)


def _index(program: Program, name: str) -> int:
    for index, op in enumerate(program.ops):
        if label(op) == name:
            return index
    raise UserError(f"{program.id} has no op {name!r}")


def _edges(program: Program, found: Explanation) -> tuple[str, ...]:
    return tuple(link.words for link in found.path if link.kind not in _OBVIOUS) or ("they share a lane",)


def _conflicting_pairs(program: Program) -> int:
    """Pairs of ops of two lanes that use a byte, one of them writing."""
    touching = [(getattr(op, "stream", "host"), *accesses(op)) for op in program.ops]
    return sum(one[0] != other[0] and _meet(one, other) for at, one in enumerate(touching) for other in touching[:at])


def _meet(one: Any, other: Any) -> bool:
    (_, reads, writes), (_, others_reads, others_writes) = one, other
    return any(
        a.buf == b.buf and overlap(a, b)
        for mine, theirs in ((writes, (*others_reads, *others_writes)), (reads, others_writes))
        for a in mine
        for b in theirs
    )
