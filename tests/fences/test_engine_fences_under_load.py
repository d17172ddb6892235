"""The engine's fences where a step is not like the last: graphs captured with work in flight, aborts, retractions."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.engine.request import FinishReason, SamplingParams
from refimpl.engine.scheduler import Scheduler
from refimpl.lessons.lossless.load import Arrival
from refimpl.lessons.lossless.play import play
from refimpl.lessons.lossless.setups import Setup, build
from refimpl.model.sampling import SamplingMode
from refimpl.order import check
from refimpl.program import Verdict
from refimpl.record import record

TRIES = 9


def _arrival(turn: int, prompt: Sequence[int], tokens: int, abort_after: int | None = None, **params: Any) -> Arrival:
    return Arrival(turn, tuple(prompt), SamplingParams(max_new_tokens=tokens, ignore_eos=True, **params), abort_after)


# Greedy at first; each other mode is needed for the first time while a forward is in flight.
UNSTEADY = [
    _arrival(0, (3, 1, 4, 1, 5), 18),
    _arrival(0, (9, 2, 6), 20),
    _arrival(2, (8, 9, 7, 9), 9, temperature=1.0, seed=5),
    _arrival(3, (3, 2, 3), 12, abort_after=9),
    _arrival(4, (8, 4, 6, 2, 6), 18, temperature=1.0, top_k=5, seed=7),
]
LENGTHS = [_arrival(0, (3, 1, 4, 1, 5), 6), _arrival(0, (9, 2, 6), 9), _arrival(3, (5, 3), 6)]


def built(worker: str, variant: str) -> Scheduler:
    torch.set_num_threads(1)
    return build(Setup(worker, variant, max_running_requests=2, max_context=24)).scheduler


@pytest.mark.parametrize("worker", ["plain", "dflash", "mtp"])
def test_no_two_accesses_race_where_graphs_are_captured_on_the_way_and_slots_run_out(worker: str) -> None:
    scheduler = built(worker, "all at once")
    with record("sim") as recording:
        played = play(scheduler, UNSTEADY)
    assert played.retracted > 0
    assert [req.finish_reason for req in played.reqs].count(FinishReason.ABORT) == 1
    assert scheduler._captured == set(SamplingMode)
    assert check(recording.program()).verdict is Verdict.OK
    assert recording.widened == ()


def _deaf_host(scheduler: Scheduler) -> None:
    scheduler.streams.fwd_prepare_d2h_stream.synchronize = lambda: None


def test_where_the_host_does_not_await_the_lengths_the_checker_finds_a_race() -> None:
    scheduler = built("plain", "cpu lengths")
    _deaf_host(scheduler)
    with record("sim") as recording:
        play(scheduler, LENGTHS)
    assert check(recording.program()).verdict is Verdict.RACE


def test_the_lengths_on_the_host_are_those_that_the_forward_has() -> None:
    scheduler = built("dflash", "cpu lengths")
    assert [_wrong_lengths(scheduler, seed) for seed in range(TRIES)] == [0] * TRIES


def test_where_the_host_does_not_await_the_lengths_some_order_gives_it_others() -> None:
    scheduler = built("dflash", "cpu lengths")
    _deaf_host(scheduler)
    assert any(_wrong_lengths(scheduler, seed) for seed in range(TRIES))


def _wrong_lengths(scheduler: Scheduler, seed: int) -> int:
    """Steps in which the host launched a forward with other lengths than the device found."""
    dev, seen = devices.sim(), list[tuple[torch.Tensor, tuple[int, ...]]]()
    generate = scheduler.worker.forward_batch_generation

    def noting(batch: Any, on_publish: Any) -> Any:
        seen.append((batch.seq_lens.clone(), batch.seq_lens_cpu))
        return generate(batch, on_publish)

    scheduler.worker.forward_batch_generation = noting  # type: ignore[method-assign]
    try:
        with dev.schedule(dev.Adversary(seed=seed)):
            play(scheduler, LENGTHS)
            dev.synchronize()
            assert len(seen) > 4
            return sum(tuple(on_device.tolist()) != on_host for on_device, on_host in seen)
    finally:
        scheduler.worker.forward_batch_generation = generate  # type: ignore[method-assign]


def test_no_two_streams_of_an_engine_are_the_same() -> None:
    streams = list(vars(built("plain", "overlap").streams).values())
    assert all(one != other for at, one in enumerate(streams) for other in streams[:at])
