"""Pinned memory: blocks that wait for the copies the allocator knows of, and nothing else."""

import gc
from typing import Any

import pytest
import torch
from torch import nn

from refimpl import device
from refimpl.device.simulator.machine import DEVICE


def pinned(n: int, value: float = 0.0) -> torch.Tensor:
    return device.pinned(n, torch.float32, "sim").fill_(value)


@pytest.mark.parametrize(("first", "second", "same"), [(4, 4, True), (33, 64, True), (32, 33, False), (4, 8, False)])
def test_a_freed_block_is_used_again_by_its_power_of_two(dev: Any, first: int, second: int, same: bool) -> None:
    x = pinned(first)
    address = x.data_ptr()
    del x
    assert (pinned(second).data_ptr() == address) is same


def test_the_last_freed_block_is_taken_first(dev: Any) -> None:
    x, y = pinned(4), pinned(4)
    addresses = [x.data_ptr(), y.data_ptr()]
    del x
    del y
    kept = [pinned(4), pinned(4)]
    assert [t.data_ptr() for t in kept] == addresses[::-1]


def test_pinned_memory_begins_with_zeros_and_a_copy_target_with_what_it_held(dev: Any) -> None:
    x = torch.ones(4, device="sim")
    dev.synchronize()
    held = pinned(4, 5.0)
    del held
    device.sleep_stream("sim", 1000)
    early = x.to("cpu", non_blocking=True)
    assert early.tolist() == [5] * 4
    dev.synchronize()
    assert early.tolist() == [1] * 4
    del early
    assert pinned(4).tolist() == [0] * 4


@pytest.mark.parametrize("upload", [True, False])
def test_a_freed_block_waits_for_its_copies(dev: Any, upload: bool) -> None:
    host, x = pinned(4, 3.0), torch.zeros(4, device="sim")
    address = host.data_ptr()
    device.sleep_stream("sim", 1000)
    if upload:
        x.copy_(host, non_blocking=True)
    else:
        host.copy_(x, non_blocking=True)
    del host
    other = pinned(4, 8.0)
    assert other.data_ptr() != address
    dev.synchronize()
    assert x.tolist() == ([3] * 4 if upload else [0] * 4)
    assert other.tolist() == [8] * 4
    assert pinned(4).data_ptr() == address


def test_a_freed_block_waits_for_the_copies_of_every_stream(dev: Any) -> None:
    host = pinned(4)
    address = host.data_ptr()
    for us in (1000, 3000):
        with dev.stream(dev.Stream()):
            device.sleep_stream("sim", us)
            host.to("sim", non_blocking=True)
    del host
    device.host_work("sim", 2000)
    assert pinned(4).data_ptr() != address
    device.host_work("sim", 2000)
    assert pinned(4).data_ptr() == address


def test_blocks_come_back_in_the_order_in_which_they_were_freed(dev: Any) -> None:
    addresses = []
    for n, us in ((4, 3000), (64, 1000)):
        host = pinned(n)
        addresses.append(host.data_ptr())
        with dev.stream(dev.Stream()):
            device.sleep_stream("sim", us)
            host.to("sim", non_blocking=True)
        del host
    device.host_work("sim", 2000)
    assert pinned(64).data_ptr() != addresses[1]
    device.host_work("sim", 2000)
    assert pinned(64).data_ptr() == addresses[1]


def test_a_queued_copy_keeps_no_block(dev: Any) -> None:
    host = pinned(4)
    device.sleep_stream("sim", 1000)
    host[1:].to("sim", non_blocking=True)
    told = []

    class Watcher(dev.Observer):  # type: ignore[misc]
        def on_free(self, buffer: Any) -> None:
            told.append(buffer)

    buffer = DEVICE.host_buffers.known(host)
    with dev.observe(Watcher()):
        del host
    assert buffer in told


def test_a_copy_that_blocks_leaves_nothing_to_wait_for(dev: Any) -> None:
    host = pinned(4)
    address = host.data_ptr()
    host.to("sim")
    host.copy_(torch.ones(4, device="sim"))
    del host
    device.sleep_stream("sim", 1000)
    assert pinned(4).data_ptr() == address


def test_to_change_a_buffer_that_is_still_held_is_a_hazard(dev: Any) -> None:
    host, x = pinned(4, 1.0), torch.zeros(4, device="sim")
    device.sleep_stream("sim", 1000)
    x.copy_(host, non_blocking=True)
    host.fill_(2)
    assert x.tolist() == [2] * 4


def uploads(dev: Any, fence: bool) -> list[list[float]]:
    """One pinned buffer is filled for two uploads in a row."""
    host, targets = pinned(4), [torch.zeros(4, device="sim") for _ in range(2)]
    for value, target in enumerate(targets, 1):
        host.fill_(value)
        target.copy_(host, non_blocking=True)
        if fence:
            dev.current_stream().record_event().synchronize()
    dev.synchronize()
    return [list(t.tolist()) for t in targets]


def test_a_buffer_filled_again_too_early_corrupts_under_some_order_and_with_a_fence_under_none(dev: Any) -> None:
    seen: dict[bool, list[list[list[float]]]] = {True: [], False: []}
    for seed in range(20):
        for fence in seen:
            with dev.schedule(dev.Adversary(seed)):
                seen[fence].append(uploads(dev, fence))
    right = [[1] * 4, [2] * 4]
    assert any(values != right for values in seen[False])
    assert all(values == right for values in seen[True])


def test_dropped_buffers_never_corrupt_their_uploads(dev: Any) -> None:
    for seed in range(20):
        with dev.schedule(dev.Adversary(seed)):
            targets = [pinned(4, float(value)).to("sim", non_blocking=True) for value in range(6)]
            dev.synchronize()
            assert [t[0].item() for t in targets] == list(range(6))


def test_a_pinned_tensor_is_an_ordinary_tensor_of_the_cpu(dev: Any) -> None:
    x = pinned(6).copy_(torch.arange(6.0))
    view = x.view(2, 3)
    view[0].numpy()[1] = 9
    assert x.tolist() == [0, 9, 2, 3, 4, 5]
    assert (view.is_pinned(), view.t().contiguous().is_pinned()) == (True, False)
    assert (x._is_view(), x.storage_offset(), x.untyped_storage().nbytes()) == (False, 0, 24)
    assert torch.equal(nn.Parameter(x).detach(), x)


@pytest.mark.parametrize("holder", ["view", "array", "slice"])
def test_whatever_shows_the_memory_keeps_the_block(dev: Any, holder: str) -> None:
    x = pinned(4, 1.0)
    address = x.data_ptr()
    held: Any = {"view": x.view(2, 2), "array": x.numpy(), "slice": x[3:]}[holder]
    del x
    other = pinned(4, 2.0)
    assert other.data_ptr() != address
    assert float(held.reshape(-1)[0]) == 1
    del held
    gc.collect()
    assert pinned(4).data_ptr() == address


def test_pinning_keeps_shape_strides_and_values(dev: Any) -> None:
    for source in (torch.arange(6.0).view(2, 3).t(), torch.ones(1).expand(3), torch.tensor(5), torch.empty(0, 2)):
        held = source.pin_memory()
        assert held.is_pinned()
        assert torch.equal(held, source)
    assert torch.arange(6.0).view(2, 3).t().pin_memory().stride() == (1, 3)


def test_a_copy_to_and_from_a_conjugate_view_moves_its_values(dev: Any) -> None:
    host = torch.tensor([1 + 2j]).pin_memory()
    assert host.conj().to("sim", non_blocking=True).tolist() == [1 - 2j]
    x = torch.tensor([3 + 4j]).to("sim")
    host.conj().copy_(x, non_blocking=True)
    dev.synchronize()
    assert host.tolist() == [3 - 4j]


def test_memory_pinned_in_a_capture_stays_the_graph_s(dev: Any) -> None:
    x, graph = torch.ones(4, device="sim"), dev.CUDAGraph()
    with dev.graph(graph):
        target = x.to("cpu", non_blocking=True)
    address = target.data_ptr()
    del target
    others = [pinned(4, 9.0) for _ in range(4)]
    assert address not in {t.data_ptr() for t in others}
    graph.replay()
    dev.synchronize()
    assert all(t.tolist() == [9] * 4 for t in others)


def test_a_replay_copies_from_whoever_has_the_source_s_memory(dev: Any) -> None:
    source, x = pinned(4, 1.0), torch.zeros(4, device="sim")
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        x.copy_(source, non_blocking=True)
    address = source.data_ptr()
    del source
    other = pinned(4, 6.0)
    assert other.data_ptr() == address
    graph.replay()
    assert x.tolist() == [6] * 4


def test_each_run_of_a_schedule_begins_with_empty_pinned_memory(dev: Any) -> None:
    for _ in range(2):
        with dev.schedule(dev.Timed()):
            assert torch.empty(2, device="sim").to("cpu", non_blocking=True).tolist() == [0, 0]
            pinned(2, 4.0)


def test_the_recorded_name_of_a_buffer_is_that_of_its_present_owner(dev: Any) -> None:
    x = pinned(4)
    first = DEVICE.host_buffers.known(x)
    del x
    y = pinned(4)
    second = DEVICE.host_buffers.known(y)
    assert first is not None
    assert second is not None
    assert first is not second
    assert first.block is second.block
