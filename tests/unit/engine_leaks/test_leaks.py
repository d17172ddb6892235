"""After ten thousand requests of every kind each row and each slot is back, and the engine still answers right."""

from dataclasses import replace

import pytest
import torch

from refimpl import device as devices
from refimpl.engine import FinishReason
from refimpl.lessons.lossless.campaign import Judge, wrong_end
from refimpl.lessons.lossless.load import LoadShape, draw_load
from refimpl.lessons.lossless.models import TINY
from refimpl.lessons.lossless.oracle import judge_greedy
from refimpl.lessons.lossless.play import LeakError, check_idle_blocking, play
from refimpl.lessons.lossless.setups import WORKERS, Setup, build
from refimpl.model.sampling import SamplingMode

MIXED = LoadShape(
    requests=10_000 // (2 * len(WORKERS)),
    vocabulary=40,
    max_prompt=6,
    max_new=5,
    turns=60,
    aborted=0.2,
    sampled=0.3,
    ignore_eos=0.5,
)
CHECKED = 100


@pytest.mark.parametrize("variant", ["overlap", "all at once"])
@pytest.mark.parametrize("worker", WORKERS)
def test_ten_thousand_mixed_requests_leave_every_row_and_slot_free(worker: str, variant: str) -> None:
    torch.set_num_threads(1)
    setup = Setup(worker, variant, max_running_requests=48, max_context=12, options=_sizes(variant))
    judge = Judge(build(setup, SamplingMode))
    played = play(judge.built.scheduler, draw_load(MIXED, seed=1))
    reasons = {req.finish_reason for req in played.reqs}
    assert len(played.reqs) == MIXED.requests
    assert reasons == set(FinishReason)
    assert [wrong_end(req, TINY.eos_token_id) for req in played.reqs if wrong_end(req, TINY.eos_token_id)] == []
    assert (played.retracted > 0) is (variant == "all at once")
    greedy = [req for req in played.reqs if req.params.greedy][-CHECKED:]
    assert all(not judge_greedy(judge.oracle, req.prompt_ids, req.output_ids).wrong for req in greedy)
    assert judge.run(replace(MIXED, requests=6, turns=2, sampled=0.0), seed=2).wrong == ()


def test_a_request_that_keeps_its_row_is_found() -> None:
    scheduler = build(Setup("plain")).scheduler
    with devices.sim().stream(scheduler.schedule_stream):
        rows = scheduler.memory.req_to_token_pool.alloc(1)
        assert rows is not None
        with pytest.raises(LeakError, match="1 of 5 rows are not back"):
            check_idle_blocking(scheduler)
        scheduler.memory.req_to_token_pool.free(rows[0])
        slots = scheduler.memory.allocator.alloc(3)
        assert slots is not None
        with pytest.raises(LeakError, match=r"3 of .* slots are not back"):
            check_idle_blocking(scheduler)
        scheduler.memory.allocator.free(slots[[0, 0, 0]], 3)
        with pytest.raises(LeakError, match="twice"):
            check_idle_blocking(scheduler)


def _sizes(variant: str) -> dict[str, int]:
    """The variant that retracts has cache for a part of what may run."""
    return {"num_slots": 300, "max_prefill_tokens": 128} if variant == "all at once" else {}
