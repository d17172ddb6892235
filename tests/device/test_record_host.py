"""What the host reads of its own tensors is in a recording, whichever way it reads."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import refimpl
from refimpl import device
from refimpl.order import check
from refimpl.program import HostRead, Memcpy, Verdict


def ones() -> torch.Tensor:
    return torch.ones(2, device="sim")


def positive() -> torch.Tensor:
    return torch.ones(2, dtype=torch.bool, device="sim")


def first() -> torch.Tensor:
    return torch.zeros(1, dtype=torch.int64, device="sim")


BESIDE_THE_DEVICE: dict[str, Callable[[torch.Tensor], object]] = {
    "add_": lambda h: ones().add_(h),
    "mul": lambda h: ones() * h,
    "pow": lambda h: h ** ones(),
    "where": lambda h: torch.where(positive(), h, torch.zeros((), device="sim")),
    "fill_": lambda h: ones().fill_(h),
    "clamp": lambda h: ones().clamp(max=h),
    "lerp": lambda h: ones().lerp(ones(), h),
    "masked_fill_": lambda h: ones().masked_fill_(positive(), h),
    "masked setitem": lambda h: ones().__setitem__(positive(), h),
    "index_fill_": lambda h: ones().index_fill_(0, first(), h),
    "_foreach_mul_": lambda h: torch._foreach_mul_([ones()], h),
}
BY_THE_HOST_ALONE: dict[str, Callable[[torch.Tensor], object]] = {
    "item": lambda h: h.item(),
    "bool": bool,
    "tolist": lambda h: h.tolist(),
    "repr": repr,
    "str": str,
    "format": lambda h: f"{h:.1f}",
    "numpy": lambda h: h.numpy(),
    "asarray": np.asarray,
    "dlpack": torch.from_dlpack,
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "clone": lambda h: h.clone(),
}
EVERY_WAY = BESIDE_THE_DEVICE | BY_THE_HOST_ALONE


@pytest.mark.parametrize("read", EVERY_WAY.values(), ids=EVERY_WAY)
@pytest.mark.parametrize("fenced", [True, False])
def test_a_read_by_the_host_before_the_copy_has_landed_is_a_race(dev: Any, read: Any, fenced: bool) -> None:
    number, value, side = device.pinned((), torch.float32, "sim"), torch.ones((), device="sim"), dev.Stream()
    dev.synchronize()
    with refimpl.record("sim") as program:
        program.name(number, "number")
        with dev.stream(side):
            number.copy_(value, non_blocking=True)
        if fenced:
            side.synchronize()
        read(number)
    assert any(isinstance(op, HostRead) and op.range.buf == "number" for op in program.ops)
    assert check(program).verdict is (Verdict.OK if fenced else Verdict.RACE)


def test_a_tensor_that_is_asked_for_its_shape_alone_is_not_read(dev: Any) -> None:
    pinned = device.pinned(4, torch.float32, "sim")
    with refimpl.record("sim") as program:
        torch.zeros_like(pinned, device="sim")
        pinned.new_full((2,), 3.0, device="sim")
        torch.rand_like(pinned)
    assert [op.op for op in program.ops] == ["launch", "launch"]


INDEXING: dict[str, Callable[[torch.Tensor], object]] = {
    "getitem": lambda h: torch.ones(4, device="sim")[h],
    "index_put_": lambda h: torch.ones(4, device="sim").index_put_((first(),), h[0].view(())),
}


@pytest.mark.parametrize("use", INDEXING.values(), ids=INDEXING)
@pytest.mark.parametrize("fenced", [True, False])
def test_an_index_of_the_host_is_read_by_its_copy_in_stream_and_not_at_the_call(
    dev: Any, use: Any, fenced: bool
) -> None:
    """So a wait of the stream is enough, where a read at the call would need the host to wait."""
    dtype = torch.int64 if use is INDEXING["getitem"] else torch.float32
    index, value, side = device.pinned(1, dtype, "sim"), torch.ones(1, dtype=dtype, device="sim"), dev.Stream()
    dev.synchronize()
    with refimpl.record("sim") as program:
        program.name(index, "index")
        with dev.stream(side):
            index.copy_(value, non_blocking=True)
        if fenced:
            dev.current_stream().wait_stream(side)
        use(index)
    assert not any(isinstance(op, HostRead) for op in program.ops)
    assert sum(isinstance(op, Memcpy) and op.src.buf == "index" for op in program.ops) == 1
    assert check(program).verdict is (Verdict.OK if fenced else Verdict.RACE)
