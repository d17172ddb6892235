"""`refimpl.device.get("cuda")`: `torch.cuda`, with the names added that the simulated device has beside it.

What does not stand here is `torch.cuda`'s own, looked up at each use: `dev.Stream` is `torch.cuda.Stream`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import torch

from refimpl.device.durations import refuse_no_time
from refimpl.device.listening import named, slept, worked

_CALIBRATION_CYCLES = 20_000_000


def __getattr__(name: str) -> Any:
    return getattr(torch.cuda, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(torch.cuda)})


def Generator() -> torch.Generator:
    """A generator for random numbers on the current device; seed it with `manual_seed`."""
    return torch.Generator("cuda")


def pinned(shape: int | Sequence[int], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A pinned host buffer of zeros: copies between it and the device with `non_blocking=True` leave the host free."""
    return torch.zeros(shape, dtype=dtype, device="cpu", pin_memory=True)


def host_work(us: float) -> None:
    """The host is busy for `us` microseconds and issues nothing: it spins."""
    refuse_no_time("host_work", us)
    worked(us)
    end = time.perf_counter_ns() + us * 1000
    while time.perf_counter_ns() < end:
        pass


def host_clock_us() -> float:
    """The host's clock in microseconds, `perf_counter`."""
    return time.perf_counter_ns() / 1000


def is_current(stream: torch.cuda.Stream) -> bool:
    """Whether ops are issued on this stream now; `current_stream()` makes a new object to say so, which takes longer
    than a launch."""
    device = torch.cuda.current_device()
    return stream.device_index == device and torch._C._cuda_getCurrentRawStream(device) == stream.cuda_stream


def sleep_stream(us: float) -> None:
    """Stalls the current stream for `us` microseconds of device time; the host does not block.

    The first call of a process measures the device's clock, which blocks the host, so call it once before a capture or
    a measurement.
    """
    refuse_no_time("sleep_stream", us)
    slept(us)
    torch.cuda._sleep(round(us * _cycles_per_us(torch.cuda.current_device())))


@cache
def _cycles_per_us(index: int) -> float:
    """The rate at which `torch.cuda._sleep` counts, measured: the nominal clock is not the one a device runs at."""
    cuda: Any = torch.cuda
    begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    cuda._sleep(_CALIBRATION_CYCLES)
    begin.record()
    cuda._sleep(_CALIBRATION_CYCLES)
    end.record()
    end.synchronize()
    return _CALIBRATION_CYCLES / (float(begin.elapsed_time(end)) * 1000)


def cost(name: str, us: float | None = None, scale: float = 1.0) -> AbstractContextManager[object]:
    """Names what is issued inside, for timelines and profiles; what it costs the hardware says, so `us` and `scale` are
    for `sim` alone."""
    # A range costs the host tens of microseconds even where no profiler listens.
    return torch.profiler.record_function(name) if torch._C._autograd._profiler_enabled() else named(name)
