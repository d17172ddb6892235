"""Folding a recording keeps what orders the lanes, and the accesses that two lanes could meet."""

from dataclasses import replace

import pytest

from refimpl.lessons.timelines.folded import Turns, folded
from refimpl.order import check
from refimpl.program import (
    Buffer,
    EventRecord,
    GraphLaunch,
    HostWork,
    Launch,
    Node,
    Op,
    Program,
    Range,
    Stream,
    StreamWaitEvent,
    StreamWaitStream,
    Verdict,
    label,
)

LENS, SCRATCH = Range("new_seq_lens_buf", 0, 16), Range("device7", 0, 64)
SEQ_LENS = Range("device8", 0, 16)
READ = "node that records"


def turn(step: int, *, waits: bool = True, records: bool = False) -> list[tuple[Op, str | None]]:
    """A turn of a small loop, as a recording has it: ops with their regions, and memory of one lane among that of two.

    Args:
        step: its number.
        waits: whether schedule waits for the publish.
        records: whether the graph records an event behind its first node.
    """
    left, read = f"seq_lens of turn {step}", (Node(name=READ, record="read_done", deps=("a",)),) * records
    nodes = (Node(name="a", writes=(SCRATCH,)), *read, Node(name="b", reads=(SCRATCH,), deps=("a",)))
    gather = Launch(stream="schedule", name="index_select", reads=(LENS,), writes=(Range(left, 0, 16),), us=2.0)
    wait: list[tuple[Op, str | None]] = [(StreamWaitEvent(event="publish_ready", stream="schedule"), "resolve")] * waits
    ops: list[tuple[Op, str | None]] = [
        *wait,
        (gather, "resolve"),
        (StreamWaitStream(stream="forward", on="schedule"), "run_batch"),
        (Launch(stream="forward", name="copy_", reads=(Range(left, 0, 16),), writes=(SCRATCH,), us=2.0), "load_batch"),
        (Launch(stream="forward", name="copy_", writes=(SCRATCH,), us=3.0), "load_batch"),
        (GraphLaunch(stream="forward", nodes=nodes, us=70.0), "verify"),
        (Launch(stream="forward", name="index_put_", writes=(LENS,), us=2.0), "publish"),
        (EventRecord(event="publish_ready", stream="forward"), "publish"),
    ]
    return [(replace(op, step=step), region) for op, region in ops]


def loop(turns: int = 4, *, waits: bool = True, records: bool = False) -> tuple[Program, list[str | None]]:
    told = [one for step in range(turns) for one in turn(step, waits=waits, records=records)]
    lefts = {f"seq_lens of turn {step}": Buffer(16) for step in range(turns)}
    buffers = {"new_seq_lens_buf": Buffer(16), "device7": Buffer(64), **lefts}
    streams = {"schedule": Stream(), "forward": Stream(), "copy": Stream()}
    return Program(ops=tuple(op for op, _ in told), streams=streams, buffers=buffers), [region for _, region in told]


def fold(told: tuple[Program, list[str | None]], first: int = 1, shown: int = 2) -> Program:
    return folded(*told, Turns(first, shown, host_us=60.0, params=("verify",)))


def test_the_turns_are_numbered_from_one_and_begin_with_the_hosts_work() -> None:
    ops = fold(loop()).ops
    assert {op.step for op in ops} == {1, 2}
    assert [op.us for op in ops if isinstance(op, HostWork)] == [60.0, 60.0]
    assert isinstance(ops[0], HostWork)


def test_what_one_function_queues_on_a_stream_is_one_op_named_for_it() -> None:
    names = [label(op) for op in fold(loop()).ops if isinstance(op, Launch)]
    assert names[:4] == ["resolve 1", "load_batch 1", "verify 1", "publish 1"]


def test_a_folded_op_takes_as_long_as_its_parts() -> None:
    us = {label(op): op.us for op in fold(loop()).ops}
    assert us["load_batch 1"] == 5.0
    assert us["verify 1"] == 70.0


def test_memory_of_one_lane_is_left_out() -> None:
    assert set(fold(loop()).buffers) == {"new_seq_lens_buf", "seq_lens 1", "seq_lens 2"}


def test_what_a_turn_made_is_numbered_as_the_turns_are() -> None:
    assert [buf for buf in fold(loop(), first=2).buffers if buf != LENS.buf] == ["seq_lens 1", "seq_lens 2"]


def test_a_lane_on_which_nothing_happens_is_left_out() -> None:
    assert set(fold(loop()).streams) == {"schedule", "forward"}


def test_a_step_whose_time_may_be_dragged_carries_its_parameter() -> None:
    assert {op.param for op in fold(loop()).ops if isinstance(op, Launch)} == {None, "verify"}


def test_an_event_in_a_graph_stands_between_what_the_graph_does_before_it_and_behind() -> None:
    ops = fold(loop(records=True)).ops
    at = next(index for index, op in enumerate(ops) if isinstance(op, EventRecord))
    assert [label(op) for op in ops[at - 1 : at + 2]] == ["metadata verify 1", "record(read_done)", "verify 1"]


def test_a_wait_for_what_came_before_the_first_turn_is_left_out() -> None:
    waits = [op.step for op in fold(loop()).ops if isinstance(op, StreamWaitEvent)]
    assert waits == [2]


@pytest.mark.parametrize(("waits", "verdict"), [(True, Verdict.OK), (False, Verdict.RACE)])
def test_the_verdict_is_that_of_the_recording(waits: bool, verdict: Verdict) -> None:
    told = loop(waits=waits)
    assert check(fold(told)).verdict is check(told[0]).verdict is verdict
