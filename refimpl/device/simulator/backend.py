"""The module behind `torch.sim` and `torch.get_device_module("sim")`: the names of `torch.cuda`, and how to choose
schedule, costs and observers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch

from refimpl.device.simulator.buffers import device_bytes
from refimpl.device.simulator.costs import CostModel
from refimpl.device.simulator.graphs import CUDAGraph, graph
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.ops import HostKind, HostStep, Kind, Observer, Op, Queue
from refimpl.device.simulator.refused import refuse_index
from refimpl.device.simulator.schedules import Adversary, Schedule, Timed
from refimpl.device.simulator.streams import Event, Stream, stream_of

__all__ = [
    "Adversary",
    "CUDAGraph",
    "CostModel",
    "Event",
    "HostKind",
    "HostStep",
    "Kind",
    "Observer",
    "Op",
    "Queue",
    "Schedule",
    "Stream",
    "Timed",
    "cost",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "graph",
    "graph_pool_handle",
    "host_clock_us",
    "is_available",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
    "observe",
    "schedule",
    "set_device",
    "set_stream",
    "stream",
    "synchronize",
]


def current_stream(device: object = None) -> Stream:
    """The stream on which ops are issued now."""
    return Stream(stream_id=DEVICE.current.id)


def default_stream(device: object = None) -> Stream:
    """The stream on which ops are issued unless another is chosen; it is like any other stream, and waits for none."""
    return Stream(stream_id=0)


def set_stream(stream: Stream | None) -> None:
    """Makes `stream` the current stream; None changes nothing."""
    if stream is not None:
        DEVICE.current = stream_of(stream).queue


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Makes `stream` the current stream inside; None changes nothing."""
    if stream is None:
        yield
        return
    with stream_of(stream):
        yield


def synchronize(device: object = None) -> None:
    """Blocks the host until every stream is empty."""
    DEVICE.synchronize()


def is_current_stream_capturing() -> bool:
    """Whether ops of the current stream go into a graph."""
    return DEVICE.capture is not None and DEVICE.capture.covers(DEVICE.current)


def graph_pool_handle() -> tuple[int, int]:
    """The memory pool of graphs; there is one."""
    return (0, 0)


def host_clock_us() -> float:
    """The virtual time of the host."""
    return DEVICE.host_us


@contextmanager
def schedule(schedule: Schedule) -> Iterator[None]:
    """Runs what is issued inside under `schedule`, from time zero on an idle device, and leaves the device idle.

    Example:
        with dev.schedule(dev.Adversary(seed=3)):
            run_the_loop()
    """
    DEVICE.synchronize()
    outer, outer_runner, outer_us = DEVICE.schedule, DEVICE.runner, DEVICE.host_us
    DEVICE.adopt(schedule)
    try:
        yield
    finally:
        DEVICE.capture = None
        try:
            DEVICE.synchronize()
        finally:
            DEVICE.adopt(outer)
            DEVICE.runner, DEVICE.host_us = outer_runner, outer_us


def cost(name: str, us: float | None = None, scale: float = 1.0) -> AbstractContextManager[None]:
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


@contextmanager
def observe(observer: Observer) -> Iterator[Observer]:
    """Tells `observer` what the device and the host do inside."""
    DEVICE.observers.append(observer)
    try:
        yield observer
    finally:
        DEVICE.observers.remove(observer)


def manual_seed(seed: int) -> None:
    """Seeds the device's default generator."""
    DEVICE.generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the device's default generator, as `torch.manual_seed` does for every device."""
    DEVICE.generator.manual_seed(seed)


def is_available() -> bool:
    """True: the simulated device needs nothing."""
    return True


def is_initialized() -> bool:
    """True: it is installed."""
    return True


def _is_in_bad_fork() -> bool:
    return False


def device_count() -> int:
    """One."""
    return 1


def current_device() -> int:
    """Zero."""
    return 0


def set_device(device: object) -> None:
    """Accepted as on CUDA: there is one device, and another is an error."""
    refuse_index(device)


@contextmanager
def device(device: object) -> Iterator[None]:
    """Accepted as on CUDA: there is one device, and another is an error."""
    refuse_index(device)
    yield


def memory_allocated(device: object = None) -> int:
    """Bytes of the device's memory that tensors and captured graphs have."""
    return device_bytes()


def empty_cache() -> None:
    """Accepted as on CUDA: nothing is cached, since freed memory is not handed on."""


def get_device_name(device: object = None) -> str:
    """What the device calls itself."""
    return "simulated device"


def get_amp_supported_dtype() -> list[torch.dtype]:
    """None: `torch.autocast("sim")` warns that it is disabled, and operators keep the types they are given."""
    return []
