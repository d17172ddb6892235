"""What the simulated device has beside the names of `torch.cuda`; `refimpl.device.get("cuda")` has the same."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch

from refimpl.device.durations import refuse_no_time
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.ops import Kind
from refimpl.device.simulator.streams import Stream


def Generator() -> torch.Generator:
    """A generator for random numbers on the device, a CPU generator; seed it with `manual_seed`.

    The seed of an op is drawn from it when the op is issued, so no schedule changes the numbers.
    """
    return torch.Generator("cpu")


def pinned(shape: int | Sequence[int], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A pinned host buffer of zeros: copies between it and the device with `non_blocking=True` leave the host free."""
    return DEVICE.pinned.copy_of(torch.zeros(shape, dtype=dtype, device="cpu"))


def host_work(us: float) -> None:
    """The host is busy for `us` microseconds of virtual time and issues nothing."""
    refuse_no_time("host_work", us)
    DEVICE.work(us)


def host_clock_us() -> float:
    """The virtual time of the host; reading it may cost some."""
    DEVICE.host_us += DEVICE.costs.clock_us
    return DEVICE.host_us


def is_current(stream: Stream) -> bool:
    """Whether ops are issued on this stream now; unlike `current_stream()` it takes the host no time."""
    return stream.stream_id == DEVICE.current.id


def sleep_stream(us: float) -> None:
    """Stalls the current stream for `us` microseconds of device time; the host does not block."""
    refuse_no_time("sleep_stream", us)
    DEVICE.launch(Kind.LAUNCH, "sleep", us, None)


def cost(name: str, us: float | None = None, scale: float = 1.0) -> AbstractContextManager[object]:
    """Names the ops issued inside, and says what they cost: together `us` of device time, or `scale` times what the
    cost model says.

    Args:
        name: The region's name, for timelines.
        us: Device time of all ops inside together, shared out in proportion to the cost model.
        scale: Factor on each op's time, used where `us` is None.
    Example:
        with dev.cost("decode step", us=4500):
            graph.replay()
    """
    return DEVICE.region(name, us, scale)
