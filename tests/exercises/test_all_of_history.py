"""Answers to this chapter's exercises other than the solutions: right ones pass, and what a verdict says is to the
point."""

from typing import Any

import pytest

from refimpl.lessons.exercises import all_of_history as chapter
from refimpl.lessons.exercises.all_of_history_programs import BELT_AND_BRACES
from refimpl.program import EventSync, StreamWaitEvent


def test_a_dictionary_and_verdicts_of_the_table_pass() -> None:
    said = {"d": "cannot tell", "c": "racy-harmful", "b": "right", "a": "racy-masked"}
    assert chapter.read_a_row.verdict(said).passed


def test_the_ops_themselves_pass() -> None:
    kept = tuple(op for op in BELT_AND_BRACES.ops if not isinstance(op, EventSync | StreamWaitEvent))
    assert chapter.leave_some_out.verdict(kept).passed


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda ops: [*ops, ops[0]], "is new or has moved"),
        (lambda ops: list(reversed(ops)), "is missing or has moved"),
        (lambda ops: None, "the answer gives NoneType"),
    ],
)
def test_an_answer_that_does_more_than_leave_out_is_told_so(answer: Any, words: str) -> None:
    verdict = chapter.leave_some_out.verdict(answer)
    assert not verdict.passed
    assert words in verdict.words
