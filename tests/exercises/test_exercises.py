"""Each exercise is one: its stub fails, its solution passes, named wrong answers are rejected for their reasons."""

import pytest

from refimpl.lessons.exercise import Exercise
from refimpl.lessons.exercises import exercises

ALL = exercises()


@pytest.mark.parametrize("name", ALL)
def test_an_exercise_is_proved_to_be_one(name: str) -> None:
    ALL[name].prove()


def test_the_first_chapter_has_its_exercises() -> None:
    assert [name for name in ALL if name.startswith("wait_or_synchronize/")] == [
        "wait_or_synchronize/which_capture",
        "wait_or_synchronize/put_the_fence",
        "wait_or_synchronize/pinned_trap",
        "wait_or_synchronize/second_reader",
        "wait_or_synchronize/one_step",
    ]


@pytest.mark.parametrize("exercise", ALL.values(), ids=ALL)
@pytest.mark.parametrize(
    "answer",
    [None, 3, "wait", [], [None], {}, lambda: 1 / 0, lambda *_: [object], dict],
    ids=["None", "3", "text", "list", "list of None", "dict", "raises", "gives classes", "class"],
)
def test_a_bad_answer_gets_a_verdict_and_no_traceback(exercise: Exercise, answer: object) -> None:
    verdict = exercise.verdict(answer)
    assert not verdict.passed
    assert verdict.words


@pytest.mark.parametrize("exercise", ALL.values(), ids=ALL)
def test_an_exercise_has_a_hint_and_a_solution_that_a_page_folds(exercise: Exercise) -> None:
    for card in (exercise.hint(), exercise.solution()):
        page = card._repr_html_()
        assert "<details><summary>" in page
        assert "<script" not in page
    assert exercise.stub_source.startswith("def my_")
    assert exercise.stub_source.partition("(")[0] in repr(exercise.solution())
