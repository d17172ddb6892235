"""The loop on a GPU: stale lengths without a fence beside a control with none; each fence costs what the bound says.

The captured step is the stall: the forward holds its stream for milliseconds before it writes. Rows are poisoned, and
every step's lengths differ from those of the step before.
"""

import pytest
import torch

from refimpl.fences import VerifyDone
from refimpl.lessons.captured_step import CapturedStep, StepShape
from refimpl.lessons.measure_overlap import CONTROL, measure
from refimpl.lessons.overlap import OverlapLoop

pytestmark = pytest.mark.gpu
SHAPE = StepShape(layers=8, hidden=4096, qkv=6144, intermediate=12288, vocab=32000)


@pytest.fixture(scope="module")
def loop() -> OverlapLoop:
    assert torch.cuda.is_available(), "these tests need a GPU: leave them out with -m 'not gpu'"
    return OverlapLoop("cuda", CapturedStep("cuda", SHAPE))


def test_lengths_are_stale_without_a_fence_and_never_with_one_or_in_the_control(loop: OverlapLoop) -> None:
    loop.event_loop_overlap(VerifyDone.NONE, 8)
    stale = {str(fence): loop.event_loop_overlap(fence, 40, host_us=200.0).stale_steps for fence in VerifyDone}
    control = loop.event_loop_normal(40, host_us=200.0)
    assert len(stale["none"]) > 20
    assert stale["wait"] == stale["synchronize"] == control.stale_steps == ()


@pytest.mark.parametrize("fence", [VerifyDone.SYNCHRONIZE, VerifyDone.WAIT])
def test_with_a_fence_the_lengths_are_those_of_the_control(loop: OverlapLoop, fence: VerifyDone) -> None:
    control = loop.event_loop_normal(24)
    assert torch.equal(loop.event_loop_overlap(fence, 24).results, control.results)
    assert (control.results >= 100).all()


def test_every_variant_lies_within_its_bounds_and_the_fences_at_their_ends(loop: OverlapLoop) -> None:
    for row in measure(loop, host_ms=(1.0,), rounds=2):
        assert 0.95 * row.lower_ms <= row.step_ms <= 1.1 * row.upper_ms
        if row.variant in ("synchronize", CONTROL):
            assert row.over_upper > 0.9
        if row.variant == "wait":
            assert row.over_lower < 1.15
