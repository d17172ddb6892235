"""A verdict fits the page."""

from refimpl.lessons.exercise import Verdict
from refimpl.lessons.lines import WIDTH

REASON = "it is rejected, and the sentence that says so is longer than the page is wide, so that it is broken"


def test_long_words_are_broken_into_lines_and_code_and_aligned_lists_are_not() -> None:
    detail = "in answer, line 3: " + "code " * 30
    first, second, last = str(Verdict(False, REASON, (detail,))).splitlines()
    assert f"{first} {second.strip()}" == f"Not yet: {REASON}"
    assert len(first) <= WIDTH
    assert last == f"  {detail}"
    assert str(Verdict(False, "two lines:\n  a   b")) == "Not yet: two lines:\n  a   b"
