"""verify_done: drop the fence and a race appears, in the proof and in the values; with either fence neither does."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.fences import VerifyDone, maybe_wait_verify_done
from refimpl.lessons.captured_step import NANO, CapturedStep
from refimpl.lessons.overlap import OverlapLoop
from refimpl.lessons.overlap_program import normal_program, overlap_program
from refimpl.lessons.record_overlap import outline, record_here
from refimpl.order import check, explain
from refimpl.program import Program

FENCED = [VerifyDone.SYNCHRONIZE, VerifyDone.WAIT]
STEPS = 12


@pytest.fixture(scope="module")
def loop() -> OverlapLoop:
    devices.sim()
    return OverlapLoop("sim", CapturedStep("sim", NANO), max_steps=STEPS)


def _at(program: Program, name: str) -> int:
    return next(index for index, op in enumerate(program.ops) if getattr(op, "name", None) == name)


@pytest.mark.parametrize("fence", list(VerifyDone))
def test_the_drawn_program_is_what_the_loop_does(fence: VerifyDone) -> None:
    assert outline(record_here(fence)) == outline(overlap_program(fence))


def test_an_outline_tells_two_fences_apart() -> None:
    outlines = [outline(overlap_program(fence)) for fence in VerifyDone]
    assert outlines[0] != outlines[1] != outlines[2] != outlines[0]


def test_without_a_fence_each_preparation_but_the_first_races_with_the_forward_before_it() -> None:
    program = overlap_program(VerifyDone.NONE, steps=5)
    pairs = {(race.first.op, race.second.op) for race in check(program).races}
    assert pairs == {(_at(program, f"forward {n}"), _at(program, f"prepare {n + 1}")) for n in range(4)}


def test_the_recorded_race_names_the_two_lines_of_the_loop() -> None:
    (race,) = check(record_here(VerifyDone.NONE)).races
    assert (race.kind, race.bytes.buf, race.count) == ("RAW", "new_seq_lens", 4)
    assert "replay" in str(race.first.site)
    assert "prepare_for_decode" in str(race.second.site)


@pytest.mark.parametrize("fence", FENCED)
def test_a_fence_orders_every_preparation_after_the_forward_before_it(fence: VerifyDone) -> None:
    program = overlap_program(fence, steps=5)
    assert check(program).verdict == "ok"
    for n in range(4):
        assert explain(program, _at(program, f"forward {n}"), _at(program, f"prepare {n + 1}")).ordered


def test_the_control_is_ordered_without_verify_done() -> None:
    assert check(normal_program()).verdict == "ok"


@pytest.mark.parametrize("fence", FENCED)
def test_with_a_fence_the_lengths_are_those_of_the_control(loop: OverlapLoop, fence: VerifyDone) -> None:
    control = loop.event_loop_normal(STEPS, host_us=1000.0)
    run = loop.event_loop_overlap(fence, STEPS, host_us=1000.0)
    assert run.stale_steps == control.stale_steps == ()
    assert torch.equal(run.results, control.results)


def test_without_a_fence_every_step_but_the_first_starts_from_lengths_one_step_old(loop: OverlapLoop) -> None:
    run = loop.event_loop_overlap(VerifyDone.NONE, STEPS, host_us=1000.0)
    assert run.stale_steps == tuple(range(1, STEPS))
    started, wrote = loop.batch_lens.cpu(), loop.results.cpu()
    assert torch.equal(started[2:], wrote[:-2])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("fence", FENCED)
def test_with_a_fence_no_legal_order_gives_stale_lengths(loop: OverlapLoop, fence: VerifyDone, seed: int) -> None:
    with loop.dev.schedule(loop.dev.Adversary(seed=seed)):
        run = loop.event_loop_overlap(fence, 8)
    assert run.stale_steps == ()


def test_without_a_fence_some_legal_orders_give_stale_lengths_and_some_do_not(loop: OverlapLoop) -> None:
    stale = set()
    for seed in range(12):
        with loop.dev.schedule(loop.dev.Adversary(seed=seed)):
            stale.update(loop.event_loop_overlap(VerifyDone.NONE, 8).stale_steps)
    assert stale


@pytest.mark.parametrize("host_us", [0.0, 1000.0, 3000.0, 7000.0])
def test_a_step_lies_between_the_longer_part_and_the_sum(loop: OverlapLoop, host_us: float) -> None:
    graph_us, calls_us = NANO.sim_us or 0.0, 100.0
    for fence in VerifyDone:
        for beat in loop.event_loop_overlap(fence, STEPS, host_us).beats:
            assert max(host_us, graph_us) <= beat.us <= host_us + graph_us + calls_us


def test_synchronize_holds_the_host_before_the_launch_and_wait_after_it(loop: OverlapLoop) -> None:
    graph_us = NANO.sim_us or 0.0
    for beat in loop.event_loop_overlap(VerifyDone.SYNCHRONIZE, STEPS, 1000.0).beats:
        assert beat.blocked_before_us > 0.9 * graph_us
        assert beat.blocked_after_us < 0.01 * graph_us
    for beat in loop.event_loop_overlap(VerifyDone.WAIT, STEPS, 1000.0).beats:
        assert beat.blocked_before_us < 0.01 * graph_us
        assert beat.blocked_after_us > 0.9 * (graph_us - 1000.0 - 100.0)


def test_the_fence_must_be_called_on_the_stream_that_reads(loop: OverlapLoop) -> None:
    with (
        loop.dev.stream(loop.forward_stream),
        pytest.raises(AssertionError, match="orders the current stream"),
    ):
        maybe_wait_verify_done(VerifyDone.WAIT, "sim", loop.dev.Event(), loop.schedule_stream)


@pytest.mark.parametrize(
    ("read", "wrong"),
    [
        ("pinned after wait", True),
        ("pinned after synchronize", False),
        ("plan without a wait", True),
        ("plan after schedule", False),
    ],
)
def test_a_wait_covers_one_stream_and_not_the_host(loop: OverlapLoop, read: str, wrong: bool) -> None:
    dev, step = loop.dev, loop.step
    loop.reset(STEPS)
    pinned, plan = devices.pinned(NANO.batch, torch.int64, "sim"), dev.Stream()
    done: Any = dev.Event()
    with dev.stream(loop.forward_stream):
        step.replay()
        done.record()
    loop.schedule_stream.wait_event(done)

    def to_pinned() -> None:
        with dev.stream(loop.schedule_stream):
            pinned.copy_(step.new_seq_lens, non_blocking=True)

    def on_plan() -> list[int]:
        with dev.stream(plan):
            copy = step.new_seq_lens.clone()
        plan.synchronize()
        found: list[int] = copy.tolist()
        return found

    reads: dict[str, Callable[[], list[int]]] = {
        "pinned after wait": lambda: (to_pinned(), pinned.tolist())[1],
        "pinned after synchronize": lambda: (to_pinned(), loop.schedule_stream.synchronize(), pinned.tolist())[2],
        "plan without a wait": on_plan,
        "plan after schedule": lambda: (plan.wait_stream(loop.schedule_stream), on_plan())[1],
    }
    found = reads[read]()
    dev.synchronize()
    assert (found != step.new_seq_lens.tolist()) is wrong
