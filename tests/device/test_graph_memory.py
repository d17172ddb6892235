"""The memory of graphs: a pool of their own, frozen addresses, outputs that the next replay overwrites."""

from typing import Any

import pytest
import torch

from refimpl import device


def doubled(dev: Any, static: torch.Tensor, pool: object = None) -> tuple[Any, torch.Tensor]:
    graph = dev.CUDAGraph()
    with dev.graph(graph, pool=pool):
        out = static * 2
    return graph, out


def test_memory_freed_in_a_capture_is_used_again_in_it(dev: Any) -> None:
    x = torch.zeros(4, device="sim")
    addresses = []
    with dev.graph(dev.CUDAGraph()):
        for _ in range(2):
            y = x + 1
            addresses.append(y.data_ptr())
            del y
    assert addresses[0] == addresses[1]


def test_a_chain_in_a_capture_comes_out_right_though_its_memory_is_used_again(dev: Any) -> None:
    x = torch.zeros(4, device="sim")
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        y = x
        for _ in range(5):
            y = y * 2 + 1
    for value in (0.0, 1.0):
        x.fill_(value)
        graph.replay()
        assert y.tolist() == [32 * value + 31] * 4


def test_nothing_outside_gets_the_memory_of_a_graph(dev: Any) -> None:
    x, graph, stream = torch.ones(4, device="sim"), dev.CUDAGraph(), dev.Stream()
    with dev.graph(graph, stream=stream):
        y = x + 1
        frozen = y.data_ptr()
        out = y * 2
        del y
    with dev.stream(stream):
        outside = [torch.full((4,), 9.0, device="sim") for _ in range(8)]
        assert frozen not in {t.data_ptr() for t in outside}
        graph.replay()
    dev.synchronize()
    assert out.tolist() == [4] * 4
    assert all(t.tolist() == [9] * 4 for t in outside)


def test_an_output_is_overwritten_by_the_next_replay(dev: Any) -> None:
    static = torch.zeros(2, device="sim")
    graph, out = doubled(dev, static)
    results = []
    for value in (1.0, 2.0):
        static.fill_(value)
        graph.replay()
        results.append(out)
    assert [r.tolist() for r in results] == [[4, 4], [4, 4]]


@pytest.mark.parametrize("late", [True, False])
def test_an_output_cloned_after_the_next_replay_is_the_next_one(dev: Any, late: bool) -> None:
    static = torch.zeros(2, device="sim")
    graph, out = doubled(dev, static)
    static.fill_(1)
    graph.replay()
    if not late:
        cloned = out.clone()
    static.fill_(2)
    graph.replay()
    if late:
        cloned = out.clone()
    assert cloned.tolist() == ([4, 4] if late else [2, 2])


def test_an_input_that_died_is_read_as_what_has_its_memory_now(dev: Any) -> None:
    with dev.stream(dev.Stream()):
        static = torch.ones(2, device="sim")
        address = static.data_ptr()
        kept = torch.ones(2, device="sim")
        graph, out = doubled(dev, static)
        del static
        other = torch.full((2,), 7.0, device="sim")
        assert other.data_ptr() == address
        graph.replay()
        assert out.tolist() == [14, 14]
        assert kept.tolist() == [1, 1]


def test_graphs_that_share_a_pool_overwrite_each_other(dev: Any) -> None:
    static = torch.ones(2, device="sim")
    first, out = doubled(dev, static)
    address = out.data_ptr()
    del out
    second, other = doubled(dev, static, pool=first.pool())
    assert other.data_ptr() == address
    assert second.pool() == first.pool()
    second.replay()
    static.fill_(5)
    first.replay()
    assert other.tolist() == [10, 10]


def test_graphs_with_a_pool_each_do_not(dev: Any) -> None:
    static = torch.ones(2, device="sim")
    first, out = doubled(dev, static)
    address = out.data_ptr()
    del out
    second, other = doubled(dev, static)
    assert other.data_ptr() != address
    assert second.pool() != first.pool()


def test_a_handle_makes_graphs_share_a_pool(dev: Any) -> None:
    handle, static = dev.graph_pool_handle(), torch.ones(2, device="sim")
    assert handle != dev.graph_pool_handle()
    first, out = doubled(dev, static, pool=handle)
    address = out.data_ptr()
    del out
    second, other = doubled(dev, static, pool=handle)
    assert other.data_ptr() == address
    assert first.pool() == second.pool() == handle


def test_an_output_outlives_its_graph(dev: Any) -> None:
    static = torch.ones(2, device="sim")
    graph, out = doubled(dev, static)
    graph.replay()
    dev.synchronize()
    del graph
    others = [torch.full((2,), 9.0, device="sim") for _ in range(8)]
    assert out.tolist() == [2, 2]
    assert others[0].tolist() == [9, 9]


def test_the_pool_goes_with_its_last_graph_and_tensor(dev: Any) -> None:
    static = torch.ones(2, device="sim")
    dev.empty_cache()
    before = dev.memory_reserved()
    first, out = doubled(dev, static)
    second, _ = doubled(dev, static, pool=first.pool())
    taken = dev.memory_reserved()
    del first
    second.reset()
    assert taken == dev.memory_reserved() > before
    del out, _
    assert dev.memory_reserved() == before


def test_a_replay_after_its_graph_has_died_still_runs(dev: Any) -> None:
    static = torch.ones(2, device="sim")
    graph, out = doubled(dev, static)
    dev.synchronize()
    static.fill_(3)
    graph.replay()
    del graph
    assert out.tolist() == [6, 6]


def test_a_recorded_block_that_is_freed_in_a_capture_waits_for_what_is_queued_when_the_capture_is_over(
    dev: Any,
) -> None:
    side, x, y = dev.Stream(), torch.ones(2, device="sim"), torch.ones(2, device="sim")
    address = x.data_ptr()
    with dev.graph(dev.CUDAGraph()):
        y.add_(1)
        x.record_stream(side)
        del x
        with dev.stream(side):
            device.sleep_stream("sim", 1000)
    assert torch.empty(2, device="sim").data_ptr() != address
    device.host_work("sim", 2000)
    assert torch.empty(2, device="sim").data_ptr() == address


def test_what_is_no_pool_is_refused(dev: Any) -> None:
    with pytest.raises(TypeError, match="graph_pool_handle"), dev.graph(dev.CUDAGraph(), pool="mine"):
        pass
    with pytest.raises(RuntimeError, match="no finished capture"):
        dev.CUDAGraph().pool()
    assert torch.ones(2, device="sim").tolist() == [1, 1]
