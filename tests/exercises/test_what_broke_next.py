"""Answers to this chapter's exercises other than the solutions: right ones pass, and what a verdict says is to the
point."""

from typing import Any

import pytest

from refimpl.lessons.exercise_order import inserted
from refimpl.lessons.exercises import what_broke_next as chapter
from refimpl.program import EventRecord, Op, StreamWaitEvent


def test_the_pair_may_be_named_either_way_round_and_in_any_step() -> None:
    for pair in (("new_seq_lens", "pull 2", "verify 1"), ["new_seq_lens", "verify 1", "pull 2"]):
        assert chapter.who_else.verdict(pair).passed


def test_the_truth_as_the_text_tells_it_passes() -> None:
    assert chapter.state_the_reads.verdict(
        {"load_batch": ("req_to_token",), "metadata": ("req_to_token",), "layers": ()}
    ).passed


def test_an_event_behind_the_stash_is_as_good_as_a_wait_for_the_stream() -> None:
    def answer(ops: list[Op]) -> Any:
        recorded = inserted("stash", EventRecord(event="stashed", stream="forward"), first=1, last=1, after=True)(ops)
        return inserted("seed", StreamWaitEvent(event="stashed", stream="schedule"))(recorded)

    assert chapter.finer_event.verdict(answer).passed


@pytest.mark.parametrize("answer", [None, {"load_batch": []}, {"a": [], "b": [], "c": []}])
def test_an_answer_of_another_form_is_told_the_keys(answer: Any) -> None:
    assert "load_batch, metadata, layers" in chapter.state_the_reads.verdict(answer).words
