"""One draft_done for all steps, recorded anew in each: harmless for a wait that was called, and for nothing else."""

import pytest
import torch

from refimpl import device as devices
from refimpl.order import explain
from refimpl.program import Op
from tests.litmus import words as w

STEP_US = 1000.0


def step(draft: str) -> tuple[Op, ...]:
    """The draft of a step, and the event at its tail; ``s`` is forward."""
    return (w.write("s", draft), w.record("draft_done", "s"))


def plan(draft: str) -> tuple[Op, ...]:
    """The plan of that step, which reads what was drafted; ``t`` is plan."""
    return (w.wait("draft_done", "t"), w.read("t", draft))


def test_a_wait_is_bound_to_the_record_before_it_whatever_is_recorded_behind() -> None:
    bound = w.program(*step("x"), *plan("x"), *step("y"))
    _, _, wait, read, later, _ = range(6)
    assert explain(bound, 0, read).ordered
    assert not explain(bound, later, read).ordered
    assert not explain(bound, later, wait).ordered


def test_a_wait_that_is_called_behind_the_next_record_waits_for_the_next_draft_too() -> None:
    late = w.program(*step("x"), *step("y"), *plan("x"))
    assert explain(late, 0, 5).ordered
    assert explain(late, 2, 5).ordered
    assert w.verdict(*late.ops) is w.OK


def test_where_the_next_record_is_another_streams_the_late_wait_misses_the_first_draft() -> None:
    elsewhere = (w.write("u", "y"), w.record("draft_done", "u"))
    race = w.only_race(*step("x"), *elsewhere, *plan("x"))
    assert (race.kind, race.bytes.buf) == ("RAW", "x")
    assert ("record-drops-capture", 3) in w.lints(*step("x"), *elsewhere, *plan("x"))


def test_a_host_that_synchronizes_behind_the_next_record_waits_for_the_next_step() -> None:
    prompt = w.program(*step("x"), w.synchronize("draft_done"), *step("y"), w.host_read("other"))
    late = w.program(*step("x"), *step("y"), w.synchronize("draft_done"), w.host_read("other"))
    assert not explain(prompt, 3, 5).ordered
    assert explain(late, 2, 5).ordered


def test_a_host_that_the_next_step_needs_must_not_wait_for_its_record() -> None:
    """The host means the first step's event, holds the second's, and would set off what the second waits for."""
    second = (w.wait_flag("s"), *step("y"))
    behind = (*step("x"), *second, w.synchronize("draft_done"), w.set_flag("u"))
    before = (*step("x"), w.synchronize("draft_done"), *second, w.set_flag("u"))
    assert w.verdict(*behind) is w.DEADLOCK
    assert w.verdict(*before) is w.OK


# The same on the simulated device


@pytest.mark.parametrize("again", [False, True])
def test_a_plan_that_waits_is_not_held_up_by_the_next_record(again: bool) -> None:
    dev = devices.sim()
    forward, plan_stream, draft_done = dev.Stream(), dev.Stream(), dev.Event()
    drafts, planned = torch.zeros(1, device="sim"), torch.zeros(1, device="sim")
    first, done = dev.Event(enable_timing=True), dev.Event(enable_timing=True)
    with dev.schedule(dev.Timed()):
        first.record(forward)
        with forward:
            dev.sleep_stream(STEP_US)
            drafts.fill_(1)
        draft_done.record(forward)
        plan_stream.wait_event(draft_done)
        with plan_stream:
            planned.copy_(drafts)
        done.record(plan_stream)
        if again:
            with forward:
                dev.sleep_stream(STEP_US)
            draft_done.record(forward)
        done.synchronize()
        waited_us = 1000 * first.elapsed_time(done)
        assert planned.item() == 1
    assert STEP_US <= waited_us < 1.5 * STEP_US


def test_a_query_behind_the_next_record_asks_about_the_next_step() -> None:
    dev = devices.sim()
    forward, draft_done = dev.Stream(), dev.Event()
    with dev.schedule(dev.Timed()):
        draft_done.record(forward)
        draft_done.synchronize()
        assert draft_done.query()
        with forward:
            dev.sleep_stream(STEP_US)
        draft_done.record(forward)
        assert not draft_done.query()
        draft_done.synchronize()
        assert draft_done.query()
