"""Answers other than the solutions: right ones pass; and the programs behind the exercises say what they should."""

from itertools import pairwise
from typing import Any

import pytest

from refimpl.fences import SharedReadBoundary
from refimpl.lessons.exercise import Exercise
from refimpl.lessons.exercises import exercises
from refimpl.lessons.exercises import read_done_in_graphs as chapter
from refimpl.lessons.exercises.read_done_in_graphs_programs import BACKENDS, handed_over, pieces, step_of
from refimpl.order import check
from refimpl.program import Verdict


def takes_it_later(runner: Any, schedule: Any, forward: Any) -> None:
    if runner.shared_read_done_event is None:
        schedule.wait_stream(forward)
        return
    schedule.wait_event(runner.shared_read_done_event)
    runner.shared_read_done_event = None


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (chapter.declare_the_boundary, dict(zip(BACKENDS, SharedReadBoundary, strict=True))),
        (chapter.plant_the_node, ["gather rows", "translate"]),
        (chapter.plant_the_node, ("translate",)),
        (chapter.take_the_event, takes_it_later),
        (chapter.one_event_two_launches, lambda step: "even" if step % 2 == 0 else "odd"),
    ],
)
def test_another_right_answer_passes(exercise: Exercise, answer: Any) -> None:
    assert exercise.verdict(answer).passed, exercise.verdict(answer)


def test_the_chapter_has_its_exercises() -> None:
    assert [name for name in exercises() if name.startswith("read_done_in_graphs/")] == [
        "read_done_in_graphs/declare_the_boundary",
        "read_done_in_graphs/plant_the_node",
        "read_done_in_graphs/take_the_event",
        "read_done_in_graphs/one_event_two_launches",
    ]


@pytest.mark.parametrize("name", BACKENDS)
def test_a_boundary_behind_a_right_one_is_right_too(name: str) -> None:
    right = [check(step_of(BACKENDS[name], one)).verdict is Verdict.OK for one in SharedReadBoundary]
    assert right == sorted(right)
    assert right[-1]


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("events", [["e", "e"], ["e", "f"], ["e", "e", "e"], ["e", "f", "e"]])
def test_launches_stand_still_where_a_late_wait_takes_the_event_of_the_next_one(events: list[str], early: bool) -> None:
    shared = any(one == other for one, other in pairwise(events))
    stuck = shared and not early
    assert (check(handed_over(events, early)).verdict is Verdict.DEADLOCK) is stuck


def test_a_runner_of_pieces_has_no_place_before_its_replays_for_the_event() -> None:
    verdicts = [check(pieces(one)).verdict for one in (SharedReadBoundary.PRE_REPLAY, SharedReadBoundary.UNKNOWN)]
    assert verdicts == [Verdict.RACE, Verdict.OK]


def test_a_barrier_is_given_streams_and_events_and_nothing_else() -> None:
    def waits_for_a_name(runner: Any, schedule: Any, forward: Any) -> None:
        schedule.wait_stream("forward")

    assert "give one of the two streams" in chapter.take_the_event.verdict(waits_for_a_name).words
