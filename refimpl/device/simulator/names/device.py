"""The one simulated device, with the names that `torch.cuda` has for its many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from refimpl.device.simulator.names.memory import mem_get_info
from refimpl.device.simulator.refused import refuse_index


@dataclass(frozen=True)
class DeviceProperties:
    """What the device says of itself.

    Args:
        name: Its name.
        major, minor: Its compute capability, 0.0: no kernel is compiled for it, so no test for "at least" holds.
        total_memory: Bytes of its memory.
        multi_processor_count: Its processors, 1: an op has the device to itself, and ops do not slow each other.
        warp_size: Threads in a warp, 32, for code that lays out its work by it.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int


def init() -> None:
    """Accepted as on CUDA: the device needs no initialisation."""


def is_available() -> bool:
    """True: the simulated device needs nothing."""
    return True


def is_initialized() -> bool:
    """True: it is installed."""
    return True


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


@contextmanager
def device_of(tensor: object) -> Iterator[None]:
    """Accepted as on CUDA: there is one device."""
    yield


def get_device_name(device: object = None) -> str:
    """What the device calls itself."""
    refuse_index(device)
    return "simulated device"


def get_device_properties(device: object = None) -> DeviceProperties:
    """What the device says of itself."""
    major, minor = get_device_capability(device)
    return DeviceProperties(get_device_name(device), major, minor, mem_get_info()[1], 1, 32)


def get_device_capability(device: object = None) -> tuple[int, int]:
    """0.0: no kernel is compiled for the simulated device, so no test for "at least" holds."""
    refuse_index(device)
    return (0, 0)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True: operators run on the CPU, which has the type."""
    return True


def is_tf32_supported() -> bool:
    """False: matrix products keep the precision of their type."""
    return False


def ipc_collect() -> None:
    """Accepted as on CUDA: no other process shares the device's memory."""


def get_amp_supported_dtype() -> list[torch.dtype]:
    """None: `torch.autocast("sim")` warns that it is disabled, and operators keep the types they are given."""
    return []
