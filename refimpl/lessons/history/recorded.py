"""One run of an engine as a stream program, and what the checker finds in it: it judges every order of that run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from refimpl.lessons.history.loads import draw
from refimpl.lessons.history.subject import Subject, build
from refimpl.lessons.timelines.record import record_load
from refimpl.order import Race, check
from refimpl.program import Program

RECORDED_SEED = 0
"""Of the requests of the run that is recorded."""


@dataclass(frozen=True)
class Found:
    """Races of one kind on one buffer.

    Args:
        kind: ``"RAW"``, ``"WAR"``, ``"WAW"`` or ``"lifetime"``.
        buffer: at stake.
        count: pairs of ops, or of call sites, that race so.
        example: the first of them, in words.
    """

    kind: str
    buffer: str
    count: int
    example: str


def recorded(subject: Subject, seed: int = RECORDED_SEED) -> Program:
    """Runs an engine once under the recorder, behind a run that took its memory.

    Args:
        subject: which engine.
        seed: of its requests.

    Order:
        The host blocks until the device is idle, before and after.
    """
    load = draw(subject.load, subject.models, seed)
    recording = record_load(build(subject).scheduler, load).recording
    return recording.program(id=f"history/{subject.worker}/{subject.load}")


def races(program: Program) -> tuple[Found, ...]:
    """What the checker finds, a row for each kind of hazard on each buffer; most pairs first."""
    found = check(program).races
    counts = Counter((str(race.kind), race.bytes.buf) for race in found)
    return tuple(Found(kind, buffer, n, _first(found, kind, buffer)) for (kind, buffer), n in counts.most_common())


def _first(found: Iterable[Race], kind: str, buffer: str) -> str:
    return next(str(race) for race in found if (str(race.kind), race.bytes.buf) == (kind, buffer))
