"""Copies between the device and pinned memory that is not contiguous go through a temporary of the host, on both
devices: the source is read at the call, and a target is there when the call returns."""

from collections.abc import Iterator

import pytest
import torch

from refimpl import device
from refimpl.device.simulator.install import installed

STALL_US = 50_000


@pytest.fixture(params=["sim", pytest.param("cuda", marks=pytest.mark.gpu)])
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "cuda" and (installed() or not torch.cuda.is_available()):
        pytest.fail("the cuda half needs a GPU, and a process without sim: run pytest -m gpu")
    device.sleep_stream(request.param, 10)
    device.get(request.param).synchronize()
    yield str(request.param)
    device.get(request.param).synchronize()


@pytest.mark.parametrize("strided", [False, True])
def test_a_strided_pinned_source_is_read_at_the_call(name: str, strided: bool) -> None:
    source = device.pinned((4, 2), torch.float32, name)
    part = source[:, ::2] if strided else source[:, :]
    target = torch.zeros(part.shape, device=name)
    target.copy_(part.fill_(1), non_blocking=True)
    device.get(name).synchronize()
    device.sleep_stream(name, STALL_US)
    target.copy_(part, non_blocking=True)
    source.fill_(9)
    assert target.flatten().tolist() == [1.0 if strided else 9.0] * target.numel()


@pytest.mark.parametrize("strided", [False, True])
def test_a_strided_pinned_target_is_there_when_the_call_returns(name: str, strided: bool) -> None:
    held = device.pinned((4, 2), torch.float32, name)
    part = held[:, ::2] if strided else held[:, :]
    values = torch.ones(part.shape, device=name)
    part.copy_(values, non_blocking=True)
    device.get(name).synchronize()
    held.fill_(0)
    device.sleep_stream(name, STALL_US)
    part.copy_(values, non_blocking=True)
    assert part.flatten().tolist() == [1.0 if strided else 0.0] * part.numel()
