"""What PyTorch offers beside the device's module does what that does, or says what to use instead."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from refimpl import device

ACCELERATOR = (
    lambda: torch.accelerator.synchronize(),
    lambda: torch.accelerator.synchronize("sim"),
    lambda: torch.accelerator.current_stream().synchronize(),
    lambda: torch.accelerator.current_stream().record_event().synchronize(),
)


@pytest.mark.parametrize("wait", ACCELERATOR)
def test_the_accelerator_waits_for_the_device(dev: Any, wait: Callable[[], None]) -> None:
    target = device.pinned(2, torch.float32, "sim")
    device.sleep_stream("sim", 1000)
    target.copy_(torch.ones(2, device="sim"), non_blocking=True)
    assert target.tolist() == [0, 0]
    wait()
    assert target.tolist() == [1, 1]


def test_the_accelerators_stream_is_the_devices(dev: Any) -> None:
    stream = dev.Stream()
    with dev.stream(dev.default_stream()):
        torch.accelerator.set_stream(stream)
        assert torch.accelerator.current_stream() == dev.current_stream() == stream


def test_the_accelerator_has_one_device(dev: Any) -> None:
    assert (torch.accelerator.current_device_index(), torch.accelerator.device_count()) == (0, 1)
    torch.accelerator.set_device_index(0)
    with torch.accelerator.device_index(None), torch.accelerator.device_index(0):
        pass
    with pytest.raises(RuntimeError, match="there is one simulated device"):
        torch.accelerator.set_device_index(1)


def test_the_accelerators_memory_is_the_devices(dev: Any) -> None:
    x = torch.ones(1000, device="sim")
    for owner in (torch.accelerator, torch.accelerator.memory):
        assert owner.memory_allocated() == dev.memory_allocated() >= x.nbytes
        assert owner.memory_stats() == dev.memory_stats()
        owner.empty_cache()


def test_dlpack_of_the_device_is_refused_and_the_hosts_is_not(dev: Any) -> None:
    x = torch.ones(2, device="sim")
    calls = (
        x.__dlpack__,
        x.__dlpack_device__,
        lambda: torch.from_dlpack(x),
        lambda: torch.utils.dlpack.to_dlpack(x),
        lambda: torch.to_dlpack(x),
    )
    for call in calls:
        with pytest.raises(BufferError, match="copy it to the host first"):
            call()
    assert torch.from_dlpack(torch.utils.dlpack.to_dlpack(x.cpu())).tolist() == [1, 1]


def test_what_cuda_takes_says_who_takes_those_of_sim(dev: Any) -> None:
    for name, given in (("stream", dev.Stream()), ("set_stream", dev.Stream()), ("graph", dev.CUDAGraph())):
        with pytest.raises(TypeError, match=rf"use torch.get_device_module\('sim'\).{name}$"):
            getattr(torch.cuda, name)(given)
    with torch.cuda.stream(None):
        pass
