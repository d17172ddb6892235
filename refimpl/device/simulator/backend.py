"""The module behind `torch.sim` and `torch.get_device_module("sim")`: the names of `torch.cuda`, and how to choose
schedule, costs and observers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from torch import OutOfMemoryError

from refimpl.device.simulator.contexts import ScheduleContext, StreamContext
from refimpl.device.simulator.costs import CostModel
from refimpl.device.simulator.graphs import CUDAGraph, graph
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.names.device import (
    DeviceProperties,
    current_device,
    device,
    device_count,
    device_of,
    get_amp_supported_dtype,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
)
from refimpl.device.simulator.names.host import (
    Generator,
    cost,
    host_clock_us,
    host_work,
    is_current,
    pinned,
    sleep_stream,
)
from refimpl.device.simulator.names.memory import (
    empty_cache,
    graph_pool_handle,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
)
from refimpl.device.simulator.names.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from refimpl.device.simulator.ops import HostKind, HostStep, Kind, Observer, Op, Queue, SyncDebug
from refimpl.device.simulator.refused import no_such_name, refuse_index
from refimpl.device.simulator.schedules.adversary import Adversary
from refimpl.device.simulator.schedules.replay import Replay
from refimpl.device.simulator.schedules.run import Run
from refimpl.device.simulator.schedules.runner import Schedule
from refimpl.device.simulator.schedules.timed import Timed
from refimpl.device.simulator.streams import Event, Stream, stream_of

__all__ = [
    "Adversary",
    "CUDAGraph",
    "CostModel",
    "DeviceProperties",
    "Event",
    "Generator",
    "HostKind",
    "HostStep",
    "Kind",
    "Observer",
    "Op",
    "OutOfMemoryError",
    "Queue",
    "Replay",
    "Run",
    "Schedule",
    "ScheduleContext",
    "Stream",
    "StreamContext",
    "Timed",
    "cost",
    "current_device",
    "current_schedule_id",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "host_clock_us",
    "host_work",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "observe",
    "pinned",
    "reset_peak_memory_stats",
    "schedule",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "sleep_stream",
    "stream",
    "synchronize",
]


def current_stream(device: object = None) -> Stream:
    """The stream on which ops are issued now."""
    refuse_index(device)
    DEVICE.host_us += DEVICE.costs.stream_us
    return Stream(stream_id=DEVICE.current.id)


def default_stream(device: object = None) -> Stream:
    """The stream on which ops are issued unless another is chosen; it is like any other stream, and waits for none."""
    refuse_index(device)
    return Stream(stream_id=0)


def set_stream(stream: Stream | None) -> None:
    """Makes `stream` the current stream; None changes nothing."""
    if stream is not None:
        DEVICE.host_us += DEVICE.costs.stream_us
        DEVICE.current = stream_of(stream).queue


def stream(stream: Stream | None) -> StreamContext:
    """Makes `stream` the current stream inside; None changes nothing."""
    return StreamContext(stream)


def synchronize(device: object = None) -> None:
    """Blocks the host until every stream is empty."""
    refuse_index(device)
    DEVICE.synchronize()


def is_current_stream_capturing() -> bool:
    """Whether ops of the current stream go into a graph."""
    return DEVICE.capture is not None and DEVICE.capture.covers(DEVICE.current)


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What an operator or copy does that makes the host wait, such as `item()`: nothing, warn, or raise.

    A call that says that it waits (`synchronize`) is not meant.

    Args:
        debug_mode: "default" or 0, "warn" or 1, "error" or 2.
    Raises:
        ValueError: It is none of these.
    """
    modes = list(SyncDebug)
    if debug_mode in (0, 1, 2):
        DEVICE.sync_debug = modes[int(debug_mode)]
    elif debug_mode in [mode.value for mode in modes]:
        DEVICE.sync_debug = SyncDebug(debug_mode)
    else:
        raise ValueError(f"sim: set_sync_debug_mode({debug_mode!r}): use 'default', 'warn' or 'error'")


def get_sync_debug_mode() -> int:
    """0, 1 or 2, for what `set_sync_debug_mode` calls "default", "warn" and "error"."""
    return list(SyncDebug).index(DEVICE.sync_debug)


def schedule(schedule: Schedule) -> ScheduleContext:
    """Runs what is issued inside under `schedule`, from time zero on an idle device, and leaves the device idle.

    It begins with an empty cache of zeros, and with the default generator as it was last seeded, and afterwards memory,
    the generator and the stream pool are where they were: so what comes out depends on the order and on what the
    program brings from outside, and on no run before. A generator of the program's own is the program's to seed.

    What it gives has the `id` of the order that came out, inside and after: `dev.Replay(run.id)` takes it again.
    After an error what is still queued is dropped.

    Args:
        schedule: `Timed()`, `Adversary(seed)` or `Replay(id)`.
    Order: blocks the host on the way in, for what was queued before, and on the way out.
    Example:
        with dev.schedule(dev.Adversary(seed=3)) as run:
            run_the_loop()
        print(run.id)
    """
    return ScheduleContext(schedule)


def current_schedule_id() -> str | None:
    """The id of the present order so far, for a check that finds a wrong value; None outside of `schedule(…)`."""
    return DEVICE.run.named


@contextmanager
def observe(observer: Observer) -> Iterator[Observer]:
    """Tells `observer` what the device and the host do inside."""
    DEVICE.observers.append(observer)
    try:
        yield observer
    finally:
        DEVICE.observers.remove(observer)


def _is_in_bad_fork() -> bool:
    return False


def __getattr__(name: str) -> NoReturn:
    no_such_name(name)
