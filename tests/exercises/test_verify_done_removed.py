"""Answers other than the solutions: right ones pass, and what a verdict says names the ops."""

from collections.abc import Callable
from typing import Any

import pytest

from refimpl.lessons.exercise import Exercise
from refimpl.lessons.exercise_order import inserted
from refimpl.lessons.exercises import verify_done_removed as chapter
from refimpl.lessons.exercises.verify_done_removed_programs import BOTH, PLAN, RESULTS
from refimpl.lessons.exercises.verify_done_removed_wrong import COARSE, SELF_FENCE
from refimpl.order import check
from refimpl.program import EventRecord, Op, StreamSync, StreamWaitEvent, StreamWaitStream


def behind_the_reads(ops: list[Op]) -> Any:
    recorded = inserted("load", EventRecord(event="read_done", stream="forward"), after=True)(ops)
    return inserted("replay", StreamWaitEvent(event="read_done", stream="schedule"), after=True)(recorded)


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (chapter.which_fence, [SELF_FENCE]),
        (chapter.which_fence, lambda: (SELF_FENCE,)),
        (chapter.place_the_barrier, behind_the_reads),
        (chapter.place_the_barrier, inserted("load", COARSE, after=True)),
        (chapter.reach_the_plan, inserted("append", StreamWaitStream(stream="plan", on="forward"), first=1)),
        (chapter.two_blocks, lambda committed, block: committed + block + block),
    ],
)
def test_another_right_answer_passes(exercise: Exercise, answer: Any) -> None:
    assert exercise.verdict(answer).passed, exercise.verdict(answer)


def test_both_fences_leave_no_race_and_the_other_programs_have_theirs() -> None:
    assert check(BOTH).verdict == "ok"
    assert {race.bytes.buf for race in check(RESULTS).races} == {"req_to_token", "full_to_swa"}
    assert {race.second.lane for race in check(PLAN).races} == {"plan"}


@pytest.mark.parametrize(
    ("exercise", "answer", "words"),
    [
        (chapter.which_fence, "host synchronizes with verify_done", "gives str: let it give a set of names"),
        (chapter.place_the_barrier, inserted("free", StreamSync(stream="forward")), "holds the host"),
        (chapter.reach_the_plan, inserted("append", StreamSync(stream="forward"), first=1), "holds the host"),
        (chapter.two_blocks, lambda committed, block: committed + 2 * block - 1, "it writes where no cell is"),
        (chapter.two_blocks, lambda committed, block: committed + 2 * block + 1, "has 1 more cells than"),
        (chapter.two_blocks, 20, "give the function itself"),
    ],
)
def test_a_wrong_answer_is_told_why(exercise: Exercise, answer: Callable[..., Any], words: str) -> None:
    verdict = exercise.verdict(answer)
    assert not verdict.passed
    assert words in verdict.words
