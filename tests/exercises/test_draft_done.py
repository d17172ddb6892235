"""Answers other than the solutions: right ones pass; and the programs behind the exercises say what they should."""

from typing import Any

import pytest

from refimpl.lessons.exercise import Exercise
from refimpl.lessons.exercise_order import inserted
from refimpl.lessons.exercises import draft_done as chapter
from refimpl.lessons.exercises import exercises
from refimpl.lessons.exercises.draft_done_programs import EARLY, EXTENDING, TAIL, WAIT_STREAM, redrawn
from refimpl.order import check
from refimpl.program import EventRecord, Op, Program, StreamWaitEvent, StreamWaitStream, Verdict, label

PLAN_WAITS = StreamWaitStream(stream="plan", on="forward")


def an_event_a_step(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        answer.append(op)
        if label(op).startswith("draft "):
            event = f"drafted {op.step}"
            answer += [EventRecord(event=event, stream="forward"), StreamWaitEvent(event=event, stream="plan")]
    return answer


def recorded_behind_the_verify(ops: list[Op]) -> list[Op]:
    record, wait = EventRecord(event="ids", stream="forward"), StreamWaitEvent(event="ids", stream="plan")
    return inserted("cast ids", wait)(inserted("verify", record, after=True)(ops))


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (chapter.spell_it, an_event_a_step),
        (chapter.move_it_up, inserted("load draft", PLAN_WAITS, after=True)),
        (chapter.producer_wait, recorded_behind_the_verify),
    ],
)
def test_another_right_answer_passes(exercise: Exercise, answer: Any) -> None:
    assert exercise.verdict(answer).passed, exercise.verdict(answer)


def test_the_chapter_has_its_exercises() -> None:
    assert [name for name in exercises() if name.startswith("draft_done/")] == [
        "draft_done/spell_it",
        "draft_done/move_it_up",
        "draft_done/producer_wait",
    ]


@pytest.mark.parametrize("program", [TAIL, EARLY, EXTENDING], ids=lambda program: str(program.id))
def test_what_is_given_races(program: Program) -> None:
    assert check(program).verdict is Verdict.RACE


def test_behind_the_tail_of_forward_nothing_races() -> None:
    assert check(WAIT_STREAM).verdict is Verdict.OK


@pytest.mark.parametrize("late", [False, True])
def test_a_record_of_the_same_stream_takes_nothing_from_a_wait(late: bool) -> None:
    assert check(redrawn(late)).verdict is Verdict.OK


def test_a_late_wait_behind_another_streams_record_misses_its_own_draft() -> None:
    assert check(redrawn(late=False, elsewhere=True)).verdict is Verdict.OK
    races = check(redrawn(late=True, elsewhere=True)).races
    assert [(race.kind, race.bytes.buf) for race in races] == [("RAW", "draft_tokens 1")]
