"""The rules of an exercise, held against exercises that break them."""

from dataclasses import replace
from typing import Any

import pytest

from refimpl.lessons.exercise import Exercise, Verdict, Wrong


def _is_three(answer: Any) -> Verdict:
    return Verdict(True, "it is three") if answer == 3 else Verdict(False, f"{answer} is not three", ("look again",))


SOUND = Exercise(
    name="count",
    task="How many?",
    stub="answer = 0",
    checker=_is_three,
    nudge="More than `two`.",
    right="answer = 3",
    wrong={"too few": Wrong(2, "2 is not three")},
)


def test_a_sound_exercise_is_proved() -> None:
    SOUND.prove()


def test_a_wrong_answer_is_rejected_for_its_reason_also_where_a_page_breaks_the_line() -> None:
    reason = "it is rejected, and the sentence that says so is longer than the page is wide, so that it is broken"
    assert reason not in str(Verdict(False, reason))
    checker = {3: Verdict(True, "it is three")}.get
    replace(SOUND, checker=lambda n: checker(n) or Verdict(False, reason), wrong={"too few": Wrong(2, reason)}).prove()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stub": "answer = 3"}, "the stub passes"),
        ({"right": "answer = 4"}, "the solution fails"),
        ({"wrong": {"too many": Wrong(3, "4 is not three")}}, "'too many' passes"),
        ({"wrong": {"too few": Wrong(2, "it is too small")}}, "must be rejected for 'it is too small'"),
    ],
)
def test_an_unsound_exercise_is_not_proved(change: dict[str, Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        replace(SOUND, **change).prove()


def test_check_prints_the_verdict_with_its_details(capsys: pytest.CaptureFixture[str]) -> None:
    SOUND.check(3)
    SOUND.check(1)
    assert capsys.readouterr().out == "Right: it is three\nNot yet: 1 is not three\n  look again\n"


def test_what_an_answer_raises_is_named_with_the_readers_own_line(capsys: pytest.CaptureFixture[str]) -> None:
    def raises(_: object) -> Verdict:
        raise KeyError("verify_done")

    replace(SOUND, checker=raises).check(1)
    said = capsys.readouterr().out
    assert said.startswith("Not yet: the answer ended in KeyError: 'verify_done'")
    assert 'raise KeyError("verify_done")' in said


def test_an_answer_that_exits_gets_a_verdict() -> None:
    def leaves(_: object) -> Verdict:
        raise SystemExit(2)

    assert replace(SOUND, checker=leaves).verdict(1) == Verdict(
        False, "the answer ended in SystemExit: 2", replace(SOUND, checker=leaves).verdict(1).details
    )


def test_hint_and_solution_are_folded_on_a_page_and_whole_in_text() -> None:
    assert repr(SOUND.hint()) == "Hint: More than two."
    assert repr(SOUND.solution()) == "One solution:\n\nanswer = 3"
    assert "<details><summary>Hint</summary>\n<p>More than <code>two</code>.</p>" in SOUND.hint()._repr_html_()
