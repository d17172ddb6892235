"""The memory functions of `torch.cuda`, for the simulated device."""

from __future__ import annotations

import os

from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.memory.usage import Usage
from refimpl.device.simulator.refused import refuse_index

_CLASSES = ("all", "small_pool", "large_pool")


def memory_allocated(device: object = None) -> int:
    """Bytes of the blocks that tensors have: each request is rounded up to a multiple of 512."""
    return _all(device).allocated_bytes


def max_memory_allocated(device: object = None) -> int:
    """The largest `memory_allocated` since the start, or the last `reset_peak_memory_stats`."""
    return _all(device).values()["allocated_bytes.peak"]


def memory_reserved(device: object = None) -> int:
    """Bytes that the allocator has taken from the system, those of free blocks included."""
    return _all(device).reserved_bytes


def max_memory_reserved(device: object = None) -> int:
    """The largest `memory_reserved` since the start, or the last `reset_peak_memory_stats`."""
    return _all(device).values()["reserved_bytes.peak"]


def reset_peak_memory_stats(device: object = None) -> None:
    """Peaks count from now on."""
    refuse_index(device)
    for usage in _usages():
        usage.reset_peaks()


def memory_stats(device: object = None) -> dict[str, int]:
    """The allocator's counters, with the names that CUDA's have: `"allocated_bytes.all.current"`.

    There are `allocation`, `allocated_bytes`, `requested_bytes`, `active`, `active_bytes`, `segment` and
    `reserved_bytes`, each of `all`, `small_pool` and `large_pool`, each with `current`, `peak`, `allocated` and
    `freed`; of `inactive_split` and `inactive_split_bytes` there is `current` alone.
    """
    refuse_index(device)
    stats = {
        name.replace(".", f".{class_}."): value
        for class_, usage in zip(_CLASSES, _usages(), strict=True)
        for name, value in usage.values().items()
    }
    splits = DEVICE.memory.inactive_splits()
    for class_, of_class in zip(_CLASSES, ((True, False), (True,), (False,)), strict=True):
        found = [block.bytes for block, small in splits if small in of_class]
        stats[f"inactive_split.{class_}.current"] = len(found)
        stats[f"inactive_split_bytes.{class_}.current"] = sum(found)
    return dict(sorted(stats.items()))


def mem_get_info(device: object = None) -> tuple[int, int]:
    """Free and total bytes of the device: the host's physical memory, less what the allocator has taken.

    What other programs use is not counted, so that it does not change from run to run.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(0, total - memory_reserved(device)), total


def empty_cache() -> None:
    """Gives free segments back to the system. The host blocks only if freed blocks wait for a stream that
    `record_stream` named."""
    DEVICE.memory.empty_cache_blocking()


def graph_pool_handle() -> tuple[int, int]:
    """An id by which graph captures can share their memory: give it as `pool` to each."""
    return DEVICE.memory.graph_pools.new_id()


def _all(device: object) -> Usage:
    refuse_index(device)
    return DEVICE.memory.all


def _usages() -> tuple[Usage, Usage, Usage]:
    return DEVICE.memory.all, DEVICE.memory.small, DEVICE.memory.large
