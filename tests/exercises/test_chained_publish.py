"""Answers other than the solutions of the chapter "chained publish": right ones pass; a verdict says its reason."""

from collections.abc import Callable
from typing import Any

import pytest

from refimpl.lessons.exercise import Exercise
from refimpl.lessons.exercise_order import inserted
from refimpl.lessons.exercises import chained_publish as chapter
from refimpl.lessons.exercises import exercises
from refimpl.lessons.exercises.chained_publish_programs import FIXES, record, stash_first, wait
from refimpl.order import check
from refimpl.program import EventQuery, Op, StreamWaitStream

Answer = Callable[[list[Op]], Any]


def both(first: Answer, second: Answer) -> Answer:
    return lambda ops: second(first(ops))


def test_the_chapter_has_its_exercises() -> None:
    assert [name for name in exercises() if name.startswith("chained_publish/")] == [
        "chained_publish/what_is_sure",
        "chained_publish/keep_the_capture",
        "chained_publish/seed_a_used_row",
        "chained_publish/another_row",
    ]


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (chapter.what_is_sure, {16: [12, 10, 6, 2, 0], 9: (0, 2, 6), 5: frozenset({2})}),
        (chapter.keep_the_capture, inserted("seed 2", wait("schedule"))),
        (chapter.keep_the_capture, inserted("admit 2", wait("copy of lengths"))),
        (
            chapter.keep_the_capture,
            both(
                inserted("draft_extend 1", record("forward", "mine")),
                inserted("pull 2", wait("copy of lengths", "mine")),
            ),
        ),
        (
            chapter.seed_a_used_row,
            both(
                inserted("stash 1", record("forward", "stash_done"), after=True),
                inserted("seed publish 2", wait("schedule", "stash_done")),
            ),
        ),
        (chapter.seed_a_used_row, inserted("admit 2", StreamWaitStream(stream="schedule", on="forward"), after=True)),
        (chapter.another_row, lambda: {fix: tuple(chapter._row()[fix]) for fix in FIXES}),
    ],
)
def test_another_right_answer_passes(exercise: Exercise, answer: Any) -> None:
    assert exercise.verdict(answer).passed, exercise.verdict(answer)


@pytest.mark.parametrize(
    ("exercise", "answer", "words"),
    [
        (chapter.what_is_sure, {5: {2}, 9: {0, 2, 6}, 16: {4}}, "4 is not the op index of a write"),
        (chapter.what_is_sure, {5: {2}}, "they must be the reads, ops 5, 9, 16"),
        (chapter.what_is_sure, {5: 2, 9: {0}, 16: {0}}, "give a set of op indices"),
        (chapter.keep_the_capture, lambda ops: ops[1:], "leave its ops in their order"),
        (chapter.keep_the_capture, inserted("build 2", EventQuery(event="publish_ready")), "RAW on new_seq_lens_buf"),
        (chapter.another_row, {"overwrite": set()}, "a dictionary with the keys overwrite, chain, wait_stream"),
        (chapter.another_row, {"overwrite": "WAW", "chain": set(), "wait_stream": set()}, "give a set of races"),
    ],
)
def test_another_wrong_answer_is_told_why(exercise: Exercise, answer: Any, words: str) -> None:
    verdict = exercise.verdict(answer)
    assert not verdict.passed
    assert words in verdict.words


def test_a_worker_that_stashes_before_read_done_needs_no_fix_for_what_it_stashes() -> None:
    for fix in FIXES:
        races = check(stash_first(fix)).races
        assert "output_tokens_buf" not in {race.bytes.buf for race in races}
        assert bool(races) is (fix != "wait_stream")
