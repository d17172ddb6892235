"""The host's side of a device by its name, for `cuda` and `sim` alike: pinned memory, generators, work, a stall, the
clock, named costs.

Each is also a name of the device's module, without the first argument: `dev.host_work(500)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch

from refimpl.device.select import get

Device = str | torch.device


def pinned(shape: int | Sequence[int], dtype: torch.dtype, device: Device) -> torch.Tensor:
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
    buffer: torch.Tensor = get(device).pinned(shape, dtype)
    return buffer


def generator(device: Device, seed: int) -> torch.Generator:
    """A generator for random numbers on `device`, seeded: a CUDA generator, or on `sim` a CPU generator, which it
    accepts."""
    made: torch.Generator = get(device).Generator()
    return made.manual_seed(seed)


def host_work(device: Device, us: float) -> None:
    """The host is busy for `us` microseconds and issues nothing: it spins on `cuda`, and moves its virtual clock on
    `sim`."""
    get(device).host_work(us)


def host_clock_us(device: Device) -> float:
    """The host's clock in microseconds: `perf_counter` on `cuda`, the virtual clock on `sim`."""
    return float(get(device).host_clock_us())


def sleep_stream(device: Device, us: float) -> None:
    """Stalls the current stream for `us` microseconds of device time; the host does not block.

    On `cuda` the first call of a process measures the device's clock, which blocks the host, so call it once before a
    capture or a measurement.
    """
    get(device).sleep_stream(us)


def cost(device: Device, name: str, us: float | None = None, scale: float = 1.0) -> AbstractContextManager[object]:
    """Names what is issued inside; on `sim` it also says what it costs, which on `cuda` the hardware does.

    Args:
        device: The device.
        name: The region's name, for timelines and profiles.
        us: On `sim`, device time of all ops inside together.
        scale: On `sim`, factor on the cost model's time of each op, used where `us` is None.
    """
    region: AbstractContextManager[object] = get(device).cost(name, us, scale)
    return region
