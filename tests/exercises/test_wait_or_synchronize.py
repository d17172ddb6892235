"""Answers other than the solutions: right ones pass, and what a verdict says names the ops."""

from collections.abc import Callable
from typing import Any

import pytest

from refimpl.lessons.exercise import Exercise
from refimpl.lessons.exercise_order import inserted, listing
from refimpl.lessons.exercises import wait_or_synchronize as chapter
from refimpl.lessons.exercises.wait_or_synchronize_programs import PINNED
from refimpl.program import (
    EventQuery,
    EventRecord,
    EventSync,
    HostWork,
    Launch,
    Op,
    Stream,
    StreamWaitEvent,
    StreamWaitStream,
)

Answer = Callable[[list[Op]], Any]
COPY, READ = "copy new_seq_lens", "read lens_cpu"


def chain(*answers: Answer) -> Answer:
    def answer(ops: list[Op]) -> Any:
        for each in answers:
            ops = each(ops)
        return ops

    return answer


def coarse(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Any, write: Any) -> None:
    schedule.wait_stream(forward)
    with dev.stream(schedule):
        read()
    forward.wait_stream(schedule)
    with dev.stream(forward):
        write()


def two_events(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Any, write: Any) -> None:
    verify_done.wait(schedule)
    with dev.stream(schedule):
        read()
        read_done = dev.Event()
        read_done.record()
    forward.wait_event(read_done)
    with dev.stream(forward):
        write()
    verify_done.record(forward)


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (chapter.which_capture, {10: 9, 7: 6, 3: 2, 0: None}),
        (chapter.put_the_fence, inserted("prepare", StreamWaitStream(stream="schedule", on="forward"), first=1)),
        (
            chapter.put_the_fence,
            chain(
                inserted("forward", EventRecord(event="mine", stream="forward"), last=1, after=True),
                inserted("prepare", StreamWaitEvent(event="mine", stream="schedule"), first=1),
            ),
        ),
        (
            chapter.pinned_trap,
            chain(
                inserted(COPY, EventRecord(event="verify_done", stream="schedule"), after=True),
                inserted(READ, EventSync(event="verify_done")),
            ),
        ),
        (
            chapter.pinned_trap,
            chain(
                inserted(COPY, EventRecord(event="there", stream="schedule"), after=True),
                inserted("forward 1", EventQuery(event="there"), after=True),
            ),
        ),
        (chapter.second_reader, inserted("plan", StreamWaitStream(stream="plan", on="schedule"), first=1)),
        (chapter.second_reader, inserted("plan", StreamWaitStream(stream="plan", on="forward"), first=1)),
        (chapter.one_step, coarse),
        (chapter.one_step, two_events),
    ],
)
def test_another_right_answer_passes(exercise: Exercise, answer: Any) -> None:
    assert exercise.verdict(answer).passed, exercise.verdict(answer)


def test_an_answer_may_be_a_generator_of_ops() -> None:
    def answer(ops: list[Op]) -> Any:
        for op in ops:
            if isinstance(op, Launch) and op.name.startswith("prepare") and op.step:
                yield StreamWaitEvent(event="verify_done", stream="schedule")
            yield op

    assert chapter.put_the_fence.verdict(answer).passed


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda ops: ops[1:], "stands where the program had prepare 0"),
        (lambda ops: ops[:-1], "results 1 at step 2 is missing or has moved"),
        (lambda ops: [*ops, HostWork(name="rest")], "rest, stands where the program had its end"),
        (
            inserted("prepare", StreamWaitEvent(event="verify_done", stream="scedule"), first=1),
            "unknown stream 'scedule'",
        ),
        (lambda ops: None, "the answer gives nothing back"),
        (lambda ops: [StreamWaitEvent, *ops], "each must be an op (an instance"),
        (lambda ops: iter(int, 1), "each must be an op"),
    ],
)
def test_an_answer_that_changes_the_work_is_told_so(answer: Answer, words: str) -> None:
    verdict = chapter.put_the_fence.verdict(answer)
    assert not verdict.passed
    assert words in verdict.words


def test_a_poll_loop_holds_the_host_in_torch_too() -> None:
    def polls(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Any, write: Any) -> None:
        while not verify_done.query():
            pass
        two_events(dev, schedule, forward, verify_done, read, write)

    assert "step 0 polls an event" in chapter.one_step.verdict(polls).words


def test_a_step_reads_and_writes_once() -> None:
    def twice(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Any, write: Any) -> None:
        two_events(dev, schedule, forward, verify_done, read, write)
        with dev.stream(schedule):
            read()

    assert chapter.one_step.verdict(twice).words == "step 0 calls read() 2 times and write() 1 times: call each once."
    assert "read() 0 times" in chapter.one_step.verdict(lambda *_: None).words


def test_what_a_step_raises_leaves_the_device_usable() -> None:
    def raises(dev: Any, schedule: Any, *_: Any) -> None:
        dev.set_stream(schedule)
        raise ValueError("half way")

    assert "ValueError: half way" in chapter.one_step.verdict(raises).words
    assert chapter.one_step.verdict(coarse).passed


def test_a_listing_names_lane_reads_and_writes() -> None:
    assert (
        listing(PINNED).splitlines()[3]
        == "  3  schedule  copy new_seq_lens to lens_cpu: reads new_seq_lens; writes lens_cpu"
    )
    assert "schedule" in PINNED.streams
    assert PINNED.streams["schedule"] == Stream()
