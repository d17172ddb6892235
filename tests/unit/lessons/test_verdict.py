"""A verdict fits the page, and an exercise is proved by what it says, wherever its lines are broken."""

from typing import Any

from refimpl.lessons.exercise import Exercise, Verdict, Wrong
from refimpl.lessons.lines import WIDTH

REASON = "it is rejected, and the sentence that says so is longer than the page is wide, so that it is broken"


def test_long_words_are_broken_into_lines_and_code_and_aligned_lists_are_not() -> None:
    detail = "in answer, line 3: " + "code " * 30
    first, second, last = str(Verdict(False, REASON, (detail,))).splitlines()
    assert f"{first} {second.strip()}" == f"Not yet: {REASON}"
    assert len(first) <= WIDTH
    assert last == f"  {detail}"
    assert str(Verdict(False, "two lines:\n  a   b")) == "Not yet: two lines:\n  a   b"


def test_a_wrong_answer_is_rejected_for_its_reason_across_the_break_of_a_line() -> None:
    def checker(answer: Any) -> Verdict:
        return Verdict(True, "it is three") if answer == 3 else Verdict(False, REASON)

    Exercise(
        name="count",
        task="How many?",
        stub="answer = 0",
        checker=checker,
        nudge="More than two.",
        right="answer = 3",
        wrong={"too few": Wrong(2, REASON)},
    ).prove()
