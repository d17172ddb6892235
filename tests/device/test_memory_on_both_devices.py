"""The same text on both devices: when memory is handed on, and what that does without fences."""

import gc
from typing import Any

import pytest
import torch

from refimpl import device
from refimpl.device.simulator.install import installed

DEVICES = ["sim", pytest.param("cuda", marks=pytest.mark.gpu)]
ROWS = 1 << 18


@pytest.fixture(params=DEVICES)
def name(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and (installed() or not torch.cuda.is_available()):
        pytest.fail("the cuda half needs a GPU, and a process without sim: run pytest -m gpu")
    dev = device.get(request.param)
    device.sleep_stream(request.param, 10)
    warm = torch.full((ROWS,), 1.0, device=request.param) + 0  # CUDA loads a kernel at its first launch, which waits
    del warm
    dev.synchronize()
    gc.collect()
    dev.empty_cache()
    return str(request.param)


def test_a_freed_block_goes_to_the_next_allocation_of_its_stream(name: str) -> None:
    x = torch.empty(ROWS, device=name)
    address = x.data_ptr()
    device.sleep_stream(name, 20_000)
    del x
    assert torch.empty(ROWS, device=name).data_ptr() == address
    with device.get(name).stream(device.get(name).Stream()):
        assert torch.empty(ROWS, device=name).data_ptr() != address


def test_memory_is_counted_in_blocks(name: str) -> None:
    dev = device.get(name)
    before = dev.memory_allocated()
    dev.reset_peak_memory_stats()
    x = torch.empty(513, dtype=torch.uint8, device=name)
    assert dev.memory_allocated() - before == 1024
    del x
    assert (dev.memory_allocated(), dev.max_memory_allocated()) == (before, before + 1024)
    stats = dev.memory_stats()
    assert stats["allocated_bytes.all.current"] == before
    assert stats["allocated_bytes.small_pool.peak"] >= 1024


def test_segments_have_the_sizes_of_their_class(name: str) -> None:
    dev = device.get(name)
    for bytes_, segment in ((1, 2 << 20), ((1 << 20) + 1, 20 << 20), ((30 << 20) + 1, 32 << 20)):
        before = dev.memory_reserved()
        x = torch.empty(bytes_, dtype=torch.uint8, device=name)
        grown = dev.memory_reserved() - before
        del x
        dev.empty_cache()
        assert grown in (0, segment)  # none where another test's memory has room
        assert dev.memory_reserved() <= before


@pytest.mark.parametrize("told", [False, True])
def test_only_record_stream_keeps_a_block_for_another_stream(name: str, told: bool) -> None:
    dev = device.get(name)
    side = dev.Stream()
    x = torch.full((ROWS,), 1.0, device=name)
    dev.synchronize()
    with dev.stream(side):
        seen = torch.zeros(ROWS, device=name)
    dev.synchronize()
    with dev.stream(side):
        device.sleep_stream(name, 50_000)
        torch.add(x, 0, out=seen)
    if told:
        x.record_stream(side)
    address = x.data_ptr()
    del x
    other = torch.full((ROWS,), 9.0, device=name)
    assert (other.data_ptr() == address) is not told
    dev.synchronize()
    assert seen.unique().tolist() == ([1] if told else [9])


def test_an_output_of_a_graph_is_overwritten_by_its_next_replay(name: str) -> None:
    dev = device.get(name)
    static = torch.zeros(4, device=name)
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        out = static * 2
    kept = []
    for value in (1.0, 2.0):
        static.fill_(value)
        graph.replay()
        kept.append((out, out.clone()))
    assert [(late.tolist()[0], cloned.tolist()[0]) for late, cloned in kept] == [(4, 2), (4, 4)]


def test_graphs_of_one_pool_share_memory_that_the_first_has_freed(name: str) -> None:
    dev = device.get(name)
    static, graphs, addresses = torch.zeros(4, device=name), list[Any](), []
    for _ in range(2):
        graphs.append(dev.CUDAGraph())
        with dev.graph(graphs[-1], pool=graphs[0].pool() if len(graphs) > 1 else None):
            out = static * 2
        addresses.append(out.data_ptr())
        del out
    with dev.graph(other := dev.CUDAGraph()):
        out = static * 2
    assert addresses[0] == addresses[1] != out.data_ptr()
    assert graphs[0].pool() == graphs[1].pool() != other.pool()


def test_a_freed_pinned_block_waits_for_the_copies_it_knows_of(name: str) -> None:
    dev = device.get(name)
    host, x = device.pinned(ROWS, torch.float32, name), torch.zeros(ROWS, device=name)
    host.fill_(3)
    address = host.data_ptr()
    dev.synchronize()
    device.sleep_stream(name, 50_000)
    x.copy_(host, non_blocking=True)
    del host
    other = device.pinned(ROWS, torch.float32, name)
    other.fill_(8)
    assert other.data_ptr() != address
    dev.synchronize()
    assert x.unique().tolist() == [3]
    assert device.pinned(ROWS, torch.float32, name).data_ptr() == address


def test_a_freed_pinned_block_is_used_again_by_its_power_of_two(name: str) -> None:
    host = device.pinned(3000, torch.float32, name)
    address = host.data_ptr()
    del host
    assert device.pinned(4096, torch.float32, name).data_ptr() == address
