"""Folding a recording keeps what orders the lanes, and the accesses that two lanes could meet."""

from dataclasses import replace

import pytest

from refimpl.lessons.folded import Turns, folded
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


def turn(step: int, *, waits: bool = True) -> list[Op]:
    """A turn of a small loop, as a recording has it: call sites, and memory of one lane among that of two."""
    read = Launch(
        stream="schedule", name="index_select", reads=(LENS,), us=2.0, site="future_map.py:98 (resolve_seq_lens)"
    )
    nodes = (Node(name="a", writes=(SCRATCH,)), Node(name="b", reads=(SCRATCH,), deps=("a",)))
    ops: list[Op] = [
        *([StreamWaitEvent(event="event1", stream="schedule", site="publish.py:43 (wait_publish_ready)")] * waits),
        read,
        StreamWaitStream(stream="forward", on="schedule", site="scheduler.py:253 (run_batch)"),
        Launch(stream="forward", name="copy_", writes=(SCRATCH,), us=2.0, site="plain.py:158 (load_rows)"),
        Launch(stream="forward", name="copy_", writes=(SCRATCH,), us=3.0, site="graph_runner.py:127 (load_batch)"),
        GraphLaunch(stream="forward", nodes=nodes, us=70.0, site="graph_runner.py:160 (replay)"),
        Launch(stream="forward", name="index_put_", writes=(LENS,), us=2.0, site="future_map.py:76 (publish)"),
        EventRecord(event="event1", stream="forward", site="future_map.py:79 (publish)"),
    ]
    return [replace(op, step=step) for op in ops]


def loop(*, waits: bool = True) -> Program:
    ops = [op for step in range(4) for op in turn(step, waits=waits)]
    buffers = {"new_seq_lens_buf": Buffer(16), "device7": Buffer(64)}
    return Program(ops=tuple(ops), streams={"schedule": Stream(), "forward": Stream()}, buffers=buffers)


def fold(program: Program, first: int = 1, shown: int = 2) -> Program:
    return folded(program, Turns(first, shown, ["verify"], host_us=60.0))


def test_the_turns_are_numbered_from_one_and_begin_with_the_hosts_work() -> None:
    ops = fold(loop()).ops
    assert {op.step for op in ops} == {1, 2}
    assert [op.us for op in ops if isinstance(op, HostWork)] == [60.0, 60.0]
    assert isinstance(ops[0], HostWork)


def test_what_one_function_queues_on_a_stream_is_one_op_named_for_it() -> None:
    names = [label(op) for op in fold(loop()).ops if isinstance(op, Launch)]
    assert names[:4] == ["resolve_seq_lens 1", "load_batch verify 1", "verify 1", "publish 1"]


def test_a_folded_op_takes_as_long_as_its_parts() -> None:
    us = {label(op): op.us for op in fold(loop()).ops}
    assert us["load_batch verify 1"] == 5.0
    assert us["verify 1"] == 70.0


def test_memory_of_one_lane_is_left_out() -> None:
    assert set(fold(loop()).buffers) == {"new_seq_lens_buf"}


def test_an_event_has_the_engines_name() -> None:
    assert {op.event for op in fold(loop()).ops if isinstance(op, EventRecord)} == {"publish_ready"}


def test_a_wait_for_what_came_before_the_first_turn_is_left_out() -> None:
    waits = [op.step for op in fold(loop()).ops if isinstance(op, StreamWaitEvent)]
    assert waits == [2]


@pytest.mark.parametrize(("waits", "verdict"), [(True, Verdict.OK), (False, Verdict.RACE)])
def test_the_verdict_is_that_of_the_recording(waits: bool, verdict: Verdict) -> None:
    assert check(fold(loop(waits=waits))).verdict is check(loop(waits=waits)).verdict is verdict
