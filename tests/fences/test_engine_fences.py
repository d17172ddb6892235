"""The engine's fences: with all of them no race; without any one a race, and in some order a wrong value."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.engine.request import SamplingParams
from refimpl.engine.scheduler import Scheduler
from refimpl.fences import preset
from refimpl.lessons.lossless.broken import BROKEN, Broken
from refimpl.lessons.lossless.campaign import Judge
from refimpl.lessons.lossless.load import Arrival, LoadShape
from refimpl.lessons.lossless.play import play
from refimpl.lessons.lossless.setups import VARIANTS, WORKERS, Setup, build
from refimpl.order import check
from refimpl.program import Verdict
from refimpl.program.errors import UserError
from refimpl.record import Recording, record

ROWS, CONTEXT = 2, 24
TRIES = 9
# What a run with wrong values may end in: an index that the device refuses, an account that does not add up.
ANYTHING = (RuntimeError, AssertionError, ValueError, UserError)


def _arrival(turn: int, prompt: Sequence[int], tokens: int) -> Arrival:
    return Arrival(turn, tuple(prompt), SamplingParams(max_new_tokens=tokens, ignore_eos=True))


# Two rows for four requests: each of the later ones takes over the row of one that ended, with its redundant forward
# in flight.
HANDOVER = [
    _arrival(0, (3, 1, 4, 1, 5), 4),
    _arrival(0, (9, 2, 6), 9),
    _arrival(0, (5, 3), 6),
    _arrival(2, (8, 9, 7, 9), 5),
]


def recorded(scheduler: Scheduler) -> Recording:
    """A load as it runs in steady state: the graphs are captured, and memory of the first steps is there again."""
    with record("sim") as recording:
        for name in ("schedule", "forward", "copy", "plan"):
            recording.name(getattr(scheduler.streams, f"{name}_stream"), name)
        recording.name(scheduler.future_map.new_seq_lens_buf, "new_seq_lens_buf")
        recording.name(scheduler.memory.req_to_token_pool.req_to_token, "req_to_token")
        play(scheduler, HANDOVER)
    return recording


def built(worker: str, variant: str = "overlap", **options: Any) -> Scheduler:
    torch.set_num_threads(1)
    setup = Setup(worker, variant, max_running_requests=ROWS, max_context=CONTEXT, options=options)
    scheduler = build(setup).scheduler
    play(scheduler, HANDOVER)
    return scheduler


def without(broken: Broken, worker: str) -> Judge:
    torch.set_num_threads(1)
    judge = Judge(build(Setup(worker, max_running_requests=3, options=broken.options)))
    broken.leave_out(judge.built.scheduler)
    return judge


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("worker", WORKERS)
def test_with_all_fences_no_two_accesses_race(worker: str, variant: str) -> None:
    recording = recorded(built(worker, variant))
    assert check(recording.program()).verdict is Verdict.OK
    assert recording.widened == ()


@pytest.mark.parametrize("name", ["latest", "coarse", "in-replay", "post-replay"])
def test_wherever_the_shared_reads_are_called_done_no_two_accesses_race(name: str) -> None:
    recording = recorded(built("dflash", fences=preset(name).chosen()))
    assert check(recording.program()).verdict is Verdict.OK


@pytest.mark.parametrize("name", BROKEN)
def test_without_any_one_fence_the_checker_finds_a_race(name: str) -> None:
    broken = BROKEN[name]
    scheduler = built("dflash", **broken.options)
    broken.leave_out(scheduler)
    with record("sim") as recording, suppress(*ANYTHING):
        play(scheduler, HANDOVER)
    assert check(recording.program()).verdict is Verdict.RACE


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "war barrier"])
def test_without_any_one_fence_some_order_makes_wrong_text_or_none(name: str) -> None:
    assert any(_goes_wrong(BROKEN[name], seed) for seed in range(TRIES))


def _goes_wrong(broken: Broken, seed: int) -> bool:
    judge = without(broken, "dflash")
    try:
        return bool(judge.run(LoadShape(requests=8, vocabulary=40, aborted=0.0), seed).wrong)
    except ANYTHING:
        return True


def test_without_the_war_barrier_a_forward_reads_slots_of_the_next_owner_of_its_row() -> None:
    """What it reads is wrong, and what comes out is not: only a redundant forward can meet a row with a new owner. Its
    tokens are dropped, and what it writes into the new owner's slots lies there before, on the same stream, the new
    owner writes its own: each of its entries before it is read for the first time. A cache that shares slots between
    requests, as upstream's prefix cache, has no such excuse."""
    assert any(_foreign_slots(BROKEN["war barrier"].options, seed) for seed in range(2 * TRIES))


@pytest.mark.parametrize("seed", range(TRIES))
def test_without_the_war_barrier_the_text_is_right_all_the_same(seed: int) -> None:
    assert without(BROKEN["war barrier"], "dflash").run(LoadShape(requests=8, vocabulary=40), seed).wrong == ()


@pytest.mark.parametrize("seed", range(TRIES))
def test_with_the_war_barrier_a_forward_reads_the_slots_that_its_requests_had_at_the_launch(seed: int) -> None:
    assert _foreign_slots({}, seed) == 0


def _foreign_slots(options: Mapping[str, Any], seed: int) -> int:
    """How many slots of a snapshot differ from those that the batch's rows held when it was launched."""
    scheduler = built("dflash", **options)
    dev, seen = devices.sim(), list[Any]()
    runner, run_batch = scheduler.worker.last_shared_read_runner, scheduler.run_batch
    load_batch = runner.load_batch
    held: list[tuple[torch.Tensor, list[int], list[int]]] = []

    def noting_launch(batch: Any) -> Any:
        table = scheduler.memory.req_to_token_pool.req_to_token.clone()
        held.append((table, [req.row for req in batch.reqs], [req.kv_allocated_len for req in batch.reqs]))
        return run_batch(batch)

    def noting_snapshot(batch: Any, tokens: Any) -> None:
        load_batch(batch, tokens)
        seen.append((runner.inputs.page_table[: batch.batch_size].clone(), *held[-1]))

    scheduler.run_batch, runner.load_batch = noting_launch, noting_snapshot  # type: ignore[method-assign]
    with dev.schedule(dev.Adversary(seed=seed)):
        play(scheduler, HANDOVER)
        dev.synchronize()
        return sum(_differ(*one) for one in seen)


def _differ(snapshot: torch.Tensor, table: torch.Tensor, rows: list[int], lens: list[int]) -> int:
    pairs = zip(snapshot.cpu(), table.cpu()[rows], lens, strict=True)
    return sum(int((found[:n] != wanted[:n]).sum()) for found, wanted, n in pairs)
