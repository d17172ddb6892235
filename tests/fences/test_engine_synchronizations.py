"""In steady state the host waits once a step, for ``copy_done``, and once more where it needs the lengths."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from refimpl import device as devices
from refimpl.device.simulator.ops import HostKind, HostStep, Observer
from refimpl.engine.request import SamplingParams
from refimpl.engine.scheduler import Scheduler
from refimpl.lessons.lossless.load import Arrival
from refimpl.lessons.lossless.play import play_unchecked
from refimpl.lessons.lossless.setups import VARIANTS, WORKERS, Setup, build
from refimpl.model.sampling import SamplingMode

# Queries and work of its own do not make the host wait; a copy from pageable memory does.
WAITS = {HostKind.EVENT_SYNCHRONIZE, HostKind.STREAM_SYNCHRONIZE, HostKind.DEVICE_SYNCHRONIZE, HostKind.STAGING}


class Waits(Observer):
    """What the host waited for, turn by turn."""

    def __init__(self) -> None:
        self.turns: list[list[HostStep]] = [[]]

    def on_host(self, step: HostStep) -> None:
        if step.kind in WAITS:
            self.turns[-1].append(step)

    def next_turn(self, turn: int) -> None:
        self.turns.append([])


@contextmanager
def refused_waits() -> Iterator[None]:
    """Whatever makes the host wait without saying so, such as ``item()``, is an error inside."""
    dev = devices.sim()
    dev.set_sync_debug_mode("error")
    try:
        yield
    finally:
        dev.set_sync_debug_mode("default")


def load(temperature: float = 0.0) -> list[Arrival]:
    def params(tokens: int) -> SamplingParams:
        return SamplingParams(temperature=temperature, max_new_tokens=tokens, ignore_eos=True)

    return [Arrival(turn, (3, 1, 4), params(12 + turn)) for turn in (0, 0, 0, 3, 4, 9)]


def waits(scheduler: Scheduler, temperature: float = 0.0) -> list[list[HostStep]]:
    """Of each turn but the first, which has no results to read, and those in which the loop runs empty."""
    torch.set_num_threads(1)
    seen = Waits()
    with devices.sim().observe(seen), refused_waits():
        play_unchecked(scheduler, load(temperature), seen.next_turn)
    return seen.turns[1:-2]


ONE_WAIT = [name for name, variant in VARIANTS.items() if not variant.options.get("needs_cpu_seq_lens")]


@pytest.mark.parametrize(
    ("worker", "variant", "temperature"),
    [
        *(("plain", name, 0.0) for name in ONE_WAIT),
        *((worker, "overlap", 0.0) for worker in WORKERS if worker != "plain"),
        *((worker, "overlap", 1.0) for worker in WORKERS),
    ],
)
def test_the_host_waits_for_copy_done_once_a_turn_and_for_nothing_else(
    worker: str, variant: str, temperature: float
) -> None:
    modes = (SamplingMode.SAMPLED if temperature else SamplingMode.GREEDY,)
    scheduler = build(Setup(worker, variant), modes).scheduler
    copy_done = [slot.copy_done for slot in scheduler.results._slots]
    turns = waits(scheduler, temperature)
    assert len(turns) > 6
    assert {len(turn) for turn in turns} == {1}
    assert all(step.kind is HostKind.EVENT_SYNCHRONIZE and step.event in copy_done for (step,) in turns)


@pytest.mark.parametrize("worker", WORKERS)
def test_where_the_host_needs_the_lengths_it_waits_for_their_private_stream_too(worker: str) -> None:
    scheduler = build(Setup(worker, "cpu lengths")).scheduler
    private = scheduler.future_map.fwd_prepare_d2h_stream.queue
    turns = waits(scheduler)
    streams = [[step.queue for step in turn if step.kind is HostKind.STREAM_SYNCHRONIZE] for turn in turns]
    events = [[step for step in turn if step.kind is HostKind.EVENT_SYNCHRONIZE] for turn in turns]
    assert {len(turn) for turn in events} == {1}
    # A prefill brings its lengths along.
    assert {tuple(turn) for turn in streams} == {(), (private,)}
    assert sum(map(len, streams)) > 0.5 * len(turns)
    assert [len(turn) for turn in turns] == [len(e) + len(s) for e, s in zip(events, streams, strict=True)]


def test_a_wait_more_is_seen() -> None:
    scheduler = build(Setup("plain")).scheduler
    on_turn = scheduler.prepare_for_decode

    def blocking(batch: object) -> None:
        on_turn(batch)  # type: ignore[arg-type]
        scheduler.forward_stream.synchronize()

    scheduler.prepare_for_decode = blocking  # type: ignore[method-assign, assignment]
    assert max(len(turn) for turn in waits(scheduler)) == 2


def test_a_hidden_wait_is_refused() -> None:
    scheduler = build(Setup("plain")).scheduler
    on_turn = scheduler.prepare_for_decode

    def blocking(batch: object) -> None:
        on_turn(batch)  # type: ignore[arg-type]
        scheduler.future_map.output_tokens_buf[1].item()

    scheduler.prepare_for_decode = blocking  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError, match="wait"):
        waits(scheduler)
