"""The host's side of a device, for `cuda` and `sim` alike: pinned memory, generators, work, a stall, the clock, named
costs."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch

from refimpl.device.select import get

_CALIBRATION_CYCLES = 20_000_000


def _is_sim(device: str | torch.device) -> bool:
    """Whether `device` is the simulated one; raises if it is neither."""
    get(device)
    return torch.device(device).type == "sim"


def pinned(shape: int | tuple[int, ...], dtype: torch.dtype, device: str | torch.device) -> torch.Tensor:
    """A pinned host buffer: copies between it and `device` with `non_blocking=True` leave the host free.

    Its bytes are zero. A value copied into it is there only after the host has synchronized with the copy; a host
    read before that sees the old one.

    On `sim` a tensor's `pin_memory()` works too. A factory's `pin_memory=True` does not, and raises in PyTorch's own
    words, since PyTorch asks the backend for it in C++.

    Args:
        shape: Its shape.
        dtype: Its type.
        device: The device that copies from and to it.
    """
    shape = (shape,) if isinstance(shape, int) else shape
    if not _is_sim(device):
        return torch.zeros(shape, dtype=dtype, device="cpu", pin_memory=True)
    from refimpl.device.simulator.machine import DEVICE

    buffer = torch.zeros(shape, dtype=dtype, device="cpu")
    DEVICE.host_buffers.pinned(buffer)
    return buffer


def generator(device: str | torch.device, seed: int) -> torch.Generator:
    """A generator for random numbers on `device`, seeded: a CUDA generator, or on `sim` a CPU generator, which it
    accepts.

    `torch.Generator("sim")` raises in PyTorch's own words, since PyTorch asks the backend for it in C++.
    """
    return torch.Generator("cpu" if _is_sim(device) else device).manual_seed(seed)


def host_work(device: str | torch.device, us: float) -> None:
    """The host is busy for `us` microseconds and issues nothing: it spins on `cuda`, and moves its virtual clock on
    `sim`."""
    _refuse_no_time("host_work", us)
    if _is_sim(device):
        from refimpl.device.simulator.machine import DEVICE

        DEVICE.work(us)
        return
    end = time.perf_counter_ns() + us * 1000
    while time.perf_counter_ns() < end:
        pass


def host_clock_us(device: str | torch.device) -> float:
    """The host's clock in microseconds: `perf_counter` on `cuda`, the virtual clock on `sim`."""
    if _is_sim(device):
        from refimpl.device.simulator.machine import DEVICE

        return DEVICE.host_us
    return time.perf_counter_ns() / 1000


def sleep_stream(device: str | torch.device, us: float) -> None:
    """Stalls the current stream for `us` microseconds of device time; the host does not block.

    On `cuda` the first call of a process measures the device's clock, which blocks the host, so call it once before a
    capture or a measurement.
    """
    _refuse_no_time("sleep_stream", us)
    if _is_sim(device):
        from refimpl.device.simulator.machine import DEVICE
        from refimpl.device.simulator.ops import Kind

        DEVICE.launch(Kind.LAUNCH, "sleep", us, None)
        return
    torch.cuda._sleep(round(us * _cycles_per_us(torch.cuda.current_device())))


def _refuse_no_time(what: str, us: float) -> None:
    if not 0 <= us < math.inf:
        raise ValueError(f"{what}(us={us}): use a finite number of microseconds that is not negative")


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


def cost(
    device: str | torch.device, name: str, us: float | None = None, scale: float = 1.0
) -> AbstractContextManager[object]:
    """Names what is issued inside; on `sim` it also says what it costs, which on `cuda` the hardware does.

    Args:
        device: The device.
        name: The region's name, for timelines and profiles.
        us: On `sim`, device time of all ops inside together.
        scale: On `sim`, factor on the cost model's time of each op, used where `us` is None.
    """
    if _is_sim(device):
        region: AbstractContextManager[object] = get(device).cost(name, us, scale)
        return region
    # A range costs the host tens of microseconds even where no profiler listens.
    return torch.profiler.record_function(name) if torch._C._autograd._profiler_enabled() else nullcontext()
