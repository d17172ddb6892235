"""Copies between host and device: which block the host, and when the bytes move."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from refimpl import device


def stalled(us: float = 1000.0) -> None:
    device.sleep_stream("sim", us)


def test_early_host_read_of_a_pinned_target_sees_the_old_bytes(dev: Any) -> None:
    target = device.pinned(2, torch.float32, "sim")
    x = torch.full((2,), 5.0, device="sim")
    dev.synchronize()
    stalled()
    target.copy_(x, non_blocking=True)
    done = dev.current_stream().record_event()
    assert target.tolist() == [0, 0]
    done.synchronize()
    assert target.tolist() == [5, 5]


def test_wait_does_not_protect_a_host_read(dev: Any) -> None:
    target = device.pinned(1, torch.float32, "sim")
    x = torch.ones(1, device="sim")
    dev.synchronize()
    stalled()
    target.copy_(x, non_blocking=True)
    dev.Stream().wait_event(dev.current_stream().record_event())
    assert target.item() == 0


def test_pinned_target_is_new_once_enough_host_time_has_passed(dev: Any) -> None:
    target = device.pinned(1, torch.float32, "sim")
    target.copy_(torch.ones(1, device="sim"), non_blocking=True)
    device.host_work("sim", 10_000)
    assert target.item() == 1


def test_copy_to_pageable_memory_blocks_the_host(dev: Any) -> None:
    x = torch.ones(1, device="sim")
    target = torch.zeros(1)
    stalled()
    target.copy_(x, non_blocking=True)
    assert target.item() == 1
    assert dev.host_clock_us() > 1000


def test_blocking_copy_to_pinned_memory_blocks_the_host(dev: Any) -> None:
    target = device.pinned(1, torch.float32, "sim")
    stalled()
    target.copy_(torch.ones(1, device="sim"))
    assert target.item() == 1


def test_to_cpu_without_blocking_returns_before_the_value(dev: Any) -> None:
    x = torch.ones(1, device="sim")
    dev.synchronize()
    stalled()
    host = x.to("cpu", non_blocking=True)
    assert host.item() == 0
    dev.synchronize()
    assert host.item() == 1


def test_pinned_source_changed_too_early_corrupts_the_copy(dev: Any) -> None:
    source = device.pinned(1, torch.float32, "sim")
    source.fill_(1)
    x = torch.zeros(1, device="sim")
    stalled()
    x.copy_(source, non_blocking=True)
    source.fill_(2)
    assert x.item() == 2


def test_pageable_source_is_staged_at_the_call(dev: Any) -> None:
    source = torch.ones(1)
    stalled()
    x = source.to("sim", non_blocking=True)
    assert dev.host_clock_us() < 1000
    source.fill_(2)
    assert x.item() == 1


STRIDED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "columns": lambda pinned: pinned[:, ::2],
    "transposed": lambda pinned: pinned.t(),
    "expanded": lambda pinned: pinned[:, :1].expand(4, 4),
}
DIRECT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "whole": lambda pinned: pinned,
    "rows": lambda pinned: pinned[1:3],
    "column of one": lambda pinned: pinned[:1, :1],
}


@pytest.mark.parametrize("view", STRIDED.values(), ids=STRIDED)
def test_a_strided_pinned_source_is_staged_at_the_call(dev: Any, view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    pinned = device.pinned((4, 4), torch.float32, "sim")
    source = view(pinned.fill_(1))
    x = torch.zeros(source.shape, device="sim")
    stalled()
    x.copy_(source, non_blocking=True)
    assert dev.host_clock_us() < 1000
    pinned.fill_(2)
    assert x.unique().tolist() == [1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("view", DIRECT.values(), ids=DIRECT)
def test_a_contiguous_pinned_source_is_read_when_the_device_gets_there(
    dev: Any, view: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype
) -> None:
    pinned = device.pinned((4, 4), torch.float32, "sim")
    source = view(pinned.fill_(1))
    x = torch.zeros(source.shape, dtype=dtype, device="sim")
    stalled()
    x.copy_(source, non_blocking=True)
    pinned.fill_(2)
    assert x.unique().tolist() == [2]


def test_a_pinned_source_that_is_broadcast_is_staged_at_the_call(dev: Any) -> None:
    source, x = device.pinned(4, torch.float32, "sim").fill_(1), torch.zeros(3, 4, device="sim")
    stalled()
    x.copy_(source, non_blocking=True)
    source.fill_(2)
    assert x.unique().tolist() == [1]


def test_a_copy_to_a_strided_pinned_target_blocks_the_host(dev: Any) -> None:
    for view in (STRIDED["columns"], STRIDED["transposed"]):
        target = view(device.pinned((4, 4), torch.float32, "sim"))
        x = torch.ones(target.shape, device="sim")
        stalled()
        target.copy_(x, non_blocking=True)
        assert target.unique().tolist() == [1]


def test_dense_tensors_of_the_same_strides_are_copied_directly(dev: Any) -> None:
    pinned, x = device.pinned((4, 2), torch.float32, "sim"), torch.ones(4, 2, device="sim")
    dev.synchronize()
    stalled()
    pinned.t().copy_(x.t(), non_blocking=True)
    assert pinned.unique().tolist() == [0]
    dev.synchronize()
    assert pinned.unique().tolist() == [1]


def test_a_strided_pinned_copy_is_refused_in_a_capture(dev: Any) -> None:
    pinned, x = device.pinned((4, 4), torch.float32, "sim"), torch.zeros(4, 2, device="sim")
    for copy in (
        lambda: x.copy_(pinned[:, ::2], non_blocking=True),
        lambda: pinned[:, ::2].copy_(x, non_blocking=True),
    ):
        with pytest.raises(RuntimeError, match="contiguous pinned memory"), dev.graph(dev.CUDAGraph()):
            copy()


def test_blocking_copy_from_the_host_blocks_it(dev: Any) -> None:
    stalled()
    torch.ones(1).to("sim")
    assert dev.host_clock_us() > 1000


def test_item_blocks_the_host_until_the_value_is_there(dev: Any) -> None:
    x = torch.zeros(1, device="sim")
    stalled()
    x.add_(3)
    assert x.item() == 3
    assert dev.host_clock_us() > 1000


def test_a_boolean_mask_blocks_the_host(dev: Any) -> None:
    x = torch.tensor([1.0, -1.0, 2.0]).to("sim")
    stalled()
    assert x[x > 0].tolist() == [1, 2]
    assert dev.host_clock_us() > 1000


def test_arithmetic_leaves_the_host_free(dev: Any) -> None:
    x = torch.zeros(4, device="sim")
    stalled(50_000)
    for _ in range(10):
        x = torch.softmax(x + 1, dim=-1)
    assert dev.host_clock_us() < 1000


def test_a_number_written_through_a_boolean_mask_leaves_the_host_free(dev: Any) -> None:
    x = torch.tensor([1.0, -1.0]).to("sim")
    dev.synchronize()
    stalled()
    begin = dev.host_clock_us()
    x[x < 0] = 5
    assert dev.host_clock_us() - begin < 500
    assert x.tolist() == [1, 5]


Call = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]
FREE: dict[str, Call] = {
    "rows": lambda x, rows, table: table[rows],
    "cells": lambda x, rows, table: table[rows, 0],
    "write rows": lambda x, rows, table: table.__setitem__(rows, table[:2] + 1),
    "write cells": lambda x, rows, table: table.__setitem__((rows, 0), x[:2]),
    "index_put": lambda x, rows, table: table.index_put_((rows,), table[:2] + 1, accumulate=True),
    "index_copy": lambda x, rows, table: table.index_copy_(0, rows, table[:2] + 1),
    "gather": lambda x, rows, table: x.gather(0, rows),
    "scatter": lambda x, rows, table: x.scatter_(0, rows, 1.0),
    "masked_fill": lambda x, rows, table: x.masked_fill_(x > 0, 1),
    "a number through a mask": lambda x, rows, table: x.__setitem__(x > 0, 1),
    "where": lambda x, rows, table: torch.where(x > 0, x, 0),
    "embedding": lambda x, rows, table: torch.nn.functional.embedding(rows, table),
    "topk and sort": lambda x, rows, table: (x.topk(2), x.sort(), x.argsort()),
    "multinomial": lambda x, rows, table: torch.multinomial(x.softmax(0), 2),
    "attention": lambda x, rows, table: torch.nn.functional.scaled_dot_product_attention(*[x.view(1, 1, 2, 2)] * 3),
    "cumsum": lambda x, rows, table: x.cumsum(0),
    "a factory": lambda x, rows, table: (
        torch.zeros(3, device="sim"),
        torch.arange(3, device="sim"),
        torch.rand(3, device="sim"),
    ),
    "a number of the host": lambda x, rows, table: x.fill_(2.0).add_(torch.tensor(1.0)),
}


WAITING: dict[str, Call] = {
    "item": lambda x, rows, table: x[0].item(),
    "tolist": lambda x, rows, table: x.tolist(),
    "cpu": lambda x, rows, table: x.cpu(),
    "numpy": lambda x, rows, table: x.cpu().numpy(),
    "printing": lambda x, rows, table: repr(x),
    "a condition": lambda x, rows, table: bool(x[0] > 0),
    "a slice by a value": lambda x, rows, table: x[: rows[0]],
    "nonzero": lambda x, rows, table: x.nonzero(),
    "a mask": lambda x, rows, table: x[x > 0],
    "tensors through a mask": lambda x, rows, table: x.__setitem__(x > 0, torch.ones(4, device="sim")),
    "masked_select": lambda x, rows, table: x.masked_select(x > 0),
    "unique": lambda x, rows, table: x.unique(),
    "equal": lambda x, rows, table: torch.equal(x, x),
    "repeat_interleave": lambda x, rows, table: x.repeat_interleave(torch.ones_like(x, dtype=torch.int64)),
    "bincount": lambda x, rows, table: rows.bincount(),
}


def operands() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x, rows = torch.tensor([1.0, 2.0, 3.0, 4.0], device="sim"), torch.tensor([1, 3], device="sim")
    table = torch.zeros(4, 2, device="sim")
    stalled(50_000)
    return x, rows, table


@pytest.mark.parametrize("call", FREE.values(), ids=FREE)
def test_a_call_whose_result_has_a_known_shape_leaves_the_host_free(dev: Any, call: Call) -> None:
    x, rows, table = operands()
    call(x, rows, table)
    assert dev.host_clock_us() < 5000


@pytest.mark.parametrize("call", WAITING.values(), ids=WAITING)
def test_a_call_whose_result_the_host_needs_blocks_it(dev: Any, call: Call) -> None:
    x, rows, table = operands()
    call(x, rows, table)
    assert dev.host_clock_us() > 50_000
