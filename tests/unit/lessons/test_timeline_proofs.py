"""What is said of a recorded program follows from it: a path of edges, or an order with the values that come out."""

from dataclasses import replace

import pytest

from refimpl.lessons.timelines import (
    counterexample,
    fences_by_name,
    proof,
    races,
    without,
    without_each,
)
from refimpl.order import check
from refimpl.program import (
    Buffer,
    EventRecord,
    Launch,
    Op,
    Program,
    Range,
    Stream,
    StreamWaitEvent,
    UserError,
    Verdict,
)

LENS, ROWS = Range("new_seq_lens_buf", 0, 16), Range("req_to_token", 0, 64)


def turn(number: int) -> list[Op]:
    """A turn of a small engine, which reads lengths that the turn before left, and writes rows that it has read."""
    return [
        StreamWaitEvent(event="read_done", stream="schedule"),
        StreamWaitEvent(event="verify_done", stream="schedule"),
        Launch(stream="schedule", name=f"prepare {number}", writes=(ROWS,)),
        StreamWaitEvent(event="publish_ready", stream="schedule"),
        Launch(stream="schedule", name=f"resolve {number}", reads=(LENS,)),
        EventRecord(event="prepared", stream="schedule"),
        StreamWaitEvent(event="prepared", stream="forward"),
        Launch(stream="forward", name=f"load {number}", reads=(ROWS,)),
        EventRecord(event="read_done", stream="forward"),
        Launch(stream="forward", name=f"publish {number}", writes=(LENS,)),
        EventRecord(event="publish_ready", stream="forward"),
        EventRecord(event="verify_done", stream="forward"),
    ]


def loop() -> Program:
    ops = [replace(op, step=number) for number in (1, 2) for op in turn(number)]
    streams = {"schedule": Stream(), "forward": Stream()}
    return Program(id="loop", ops=tuple(ops), streams=streams, buffers={LENS.buf: Buffer(16), ROWS.buf: Buffer(64)})


def test_a_proof_names_the_fence_that_orders_two_ops() -> None:
    found = proof(without(loop(), ["schedule waits for verify_done"]), "publish 1", "resolve 2")
    assert len(found.edges) == 1
    assert "publish_ready" in found.edges[0]
    assert str(found).startswith("publish 1 comes before resolve 2 in every order:\n  1. ")


def test_a_proof_counts_the_pairs_of_two_lanes_that_use_the_same_bytes() -> None:
    assert proof(loop(), "load 1", "prepare 2").pairs == 8


def test_a_program_with_a_race_has_no_proof() -> None:
    broken = without(loop(), ["schedule waits for read_done", "schedule waits for verify_done"])
    with pytest.raises(UserError, match="loop has a race, so there is no proof: WAR on req_to_token"):
        proof(broken, "publish 1", "resolve 2")


def test_ops_that_nothing_orders_have_no_proof() -> None:
    program = without(loop(), ["schedule waits for publish_ready", "schedule waits for verify_done"])
    calm = replace(program, ops=tuple(replace(op, reads=()) if isinstance(op, Launch) else op for op in program.ops))
    with pytest.raises(UserError, match="nothing orders 'publish 1' and 'prepare 2'"):
        proof(without(calm, ["schedule waits for read_done"]), "publish 1", "prepare 2")


def test_a_counterexample_has_the_shortest_order_and_the_wrong_value_beside_the_right_one() -> None:
    broken = without(loop(), ["schedule waits for publish_ready", "schedule waits for verify_done"])
    found = counterexample(broken)
    assert (found.kind, found.buffer, found.first, found.second) == ("RAW", LENS.buf, "publish 1", "resolve 2")
    assert [step.partition(":")[0] for step in found.steps][-1] == "schedule"
    assert found.steps[-1].endswith("resolve 2")
    assert found.wrong[0].startswith(
        "Resolve 2 on schedule reads the value of publish 1 in new_seq_lens_buf[0:16]; under "
    )
    assert found.wrong[0].endswith(" it reads the initial value.")


def test_a_counterexample_may_be_asked_for_by_buffer_and_by_the_op_that_comes_too_early() -> None:
    broken = without(loop(), ["schedule waits for read_done", "schedule waits for verify_done"])
    found = counterexample(broken, ROWS.buf, second="prepare 2")
    assert (found.kind, found.first) == ("WAR", "load 1")
    assert "load 1 on forward reads the value of prepare 1" in found.wrong[0].lower()


def test_a_program_without_such_a_race_has_no_counterexample() -> None:
    with pytest.raises(UserError, match="loop has no race on req_to_token, so there is no counterexample"):
        counterexample(loop(), ROWS.buf)


def test_fences_of_one_place_are_one_fence_whatever_the_turn() -> None:
    assert {name: len(fences) for name, fences in fences_by_name(loop()).items()} == {
        "forward waits for prepared": 2,
        "schedule waits for publish_ready": 2,
        "schedule waits for read_done": 2,
        "schedule waits for verify_done": 2,
    }


def test_of_two_fences_for_one_hazard_each_is_redundant_and_both_are_not() -> None:
    alone = without_each(loop())
    assert [name for name, found in alone.items() if not found] == [
        "schedule waits for publish_ready",
        "schedule waits for read_done",
        "schedule waits for verify_done",
    ]
    assert races(without(loop(), ["schedule waits for publish_ready", "schedule waits for verify_done"]))
    assert check(without(loop(), ["schedule waits for verify_done"])).verdict is Verdict.OK


def test_an_unknown_fence_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(UserError, match="has no fence 'the barrier': use some of forward waits for prepared, "):
        without(loop(), ["the barrier"])
