"""On a GPU the host waits once a step, for ``copy_done``: by PyTorch's own account and by the driver's calls."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from refimpl.engine.output_processor import Output
from refimpl.engine.request import Req, SamplingParams
from refimpl.engine.scheduler import Scheduler
from refimpl.lessons.lossless.setups import WORKERS, Setup, build

pytestmark = pytest.mark.gpu

WARM_UP, STEPS, REQUESTS = 12, 20, 4
EVENT_WAIT, STREAM_WAIT = "cudaEventSynchronize", "cudaStreamSynchronize"
# Calls of the runtime in which the host waits for the device; a plain copy waits for pageable memory.
WAITS = (EVENT_WAIT, STREAM_WAIT, "cudaDeviceSynchronize", "cudaMemcpy", "cudaFree", "cudaHostAlloc", "cudaMalloc")
CALLS_OF_THE_RUNTIME = ("cuda", "cu")


def decoding(scheduler: Scheduler) -> Iterator[list[Output]]:
    """A loop in the middle of its work: every request decodes, and none ends soon."""
    params = SamplingParams(max_new_tokens=1000, ignore_eos=True)
    scheduler.inbox.extend(Req(n, [3, 1, 4, n], params) for n in range(REQUESTS))
    loop = scheduler.event_loop_overlap() if scheduler.config.overlap else scheduler.event_loop_normal()
    for _ in range(WARM_UP):
        next(loop)
    return loop


@contextmanager
def refused_waits() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def calls(worker: str, variant: str) -> Counter[str]:
    """How often the host called the runtime in ``STEPS`` steps, by the call's name."""
    scheduler = build(Setup(worker, variant, device="cuda", max_running_requests=REQUESTS, max_context=400)).scheduler
    loop = decoding(scheduler)
    torch.cuda.synchronize()
    # PyTorch's own account knows no exception: it refuses a stream's synchronize even where one is wanted.
    refused = nullcontext() if scheduler.config.needs_cpu_seq_lens else refused_waits()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled, refused:
        for _ in range(STEPS):
            next(loop)
    # The profiler itself waits for the device when it ends.
    return _of_the_runtime(profiled) - _of_the_runtime(_nothing())


def _nothing() -> profile:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as empty:
        pass
    return empty


def _of_the_runtime(profiled: profile) -> Counter[str]:
    return Counter(event.name for event in profiled.events() if event.name.startswith(CALLS_OF_THE_RUNTIME))


def assert_waits(worker: str, variant: str, wanted: dict[str, int]) -> None:
    made = calls(worker, variant)
    waits = {name: times for name, times in made.items() if name in WAITS}
    assert waits == wanted, f"{worker}, {variant}: in {STEPS} steps the host called {dict(made)}"


@pytest.mark.parametrize("variant", ["overlap", "normal", "plan stream", "sliding window"])
@pytest.mark.parametrize("worker", WORKERS)
def test_the_host_waits_for_one_event_a_step_and_for_nothing_else(worker: str, variant: str) -> None:
    assert_waits(worker, variant, {EVENT_WAIT: STEPS})


@pytest.mark.parametrize("worker", WORKERS)
def test_where_the_host_needs_the_lengths_it_waits_for_one_stream_more(worker: str) -> None:
    assert_waits(worker, "cpu lengths", {EVENT_WAIT: STEPS, STREAM_WAIT: STEPS})
