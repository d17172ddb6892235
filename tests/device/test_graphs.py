"""Graph capture freezes addresses; a replay runs on what they hold then."""

from typing import Any

import pytest
import torch

from refimpl import device


def test_replay_reads_its_static_input_when_it_runs(dev: Any) -> None:
    static = torch.zeros(2, device="sim")
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        out = static * 2
    static.fill_(3)
    graph.replay()
    assert out.tolist() == [6, 6]
    static.fill_(4)
    graph.replay()
    assert out.tolist() == [8, 8]


def test_nothing_runs_in_a_capture(dev: Any) -> None:
    x = torch.zeros(1, device="sim")
    with dev.graph(dev.CUDAGraph()):
        x.add_(1)
    assert x.item() == 0


def test_input_overwritten_behind_a_launched_replay_is_what_it_reads(dev: Any) -> None:
    static = torch.ones(1, device="sim")
    graph = dev.CUDAGraph()
    with dev.graph(graph), dev.cost("step", us=4000):
        out = static + 0
    other = dev.Stream()
    dev.synchronize()
    graph.replay()
    with dev.stream(other):
        static.fill_(9)
    dev.synchronize()
    assert out.item() == 9


def test_replay_costs_one_launch_and_the_time_of_its_region(dev: Any) -> None:
    x = torch.zeros(4, device="sim")
    graph = dev.CUDAGraph()
    with dev.graph(graph), dev.cost("step", us=4500):
        for _ in range(20):
            x.add_(1)
    before = dev.host_clock_us()
    graph.replay()
    assert dev.host_clock_us() - before == pytest.approx(dev.CostModel().graph_launch_us)
    dev.synchronize()
    assert dev.host_clock_us() - before == pytest.approx(4500 + dev.CostModel().graph_launch_us, abs=5)


def test_a_forked_stream_is_part_of_the_graph(dev: Any) -> None:
    x, side = torch.ones(1, device="sim"), dev.Stream()
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        side.wait_stream(dev.current_stream())
        with dev.stream(side), dev.cost("side", us=1000):
            y = x + 1
        dev.current_stream().wait_stream(side)
        z = y * 10
    x.fill_(2)
    graph.replay()
    assert z.item() == 30


def test_a_forked_stream_must_be_joined_back(dev: Any) -> None:
    x, side = torch.ones(1, device="sim"), dev.Stream()

    def capture() -> None:
        with dev.graph(dev.CUDAGraph()):
            side.wait_stream(dev.current_stream())
            with dev.stream(side):
                x.add_(1)

    with pytest.raises(RuntimeError, match="not joined back"):
        capture()


def test_an_external_event_is_recorded_by_each_replay(dev: Any) -> None:
    x, reader = torch.zeros(1, device="sim"), dev.Stream()
    event = dev.Event(external=True)
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        with dev.cost("slow", us=3000):
            x.add_(1)
        event.record()
    for step in (1, 2):
        graph.replay()
        reader.wait_event(event)
        with dev.stream(reader):
            seen = x + 0
        dev.synchronize()
        assert seen.item() == step


@pytest.mark.parametrize(
    "call",
    [
        lambda dev, x: dev.synchronize(),
        lambda dev, x: dev.current_stream().synchronize(),
        lambda dev, x: x.item(),
        lambda dev, x: x.cpu(),
        lambda dev, x: x.nonzero(),
        lambda dev, x: dev.current_stream().query(),
    ],
)
def test_blocking_in_a_capture_is_an_error(dev: Any, call: Any) -> None:
    x = torch.ones(1, device="sim")
    with pytest.raises(RuntimeError, match="in a graph capture"), dev.graph(dev.CUDAGraph()):
        call(dev, x)
    assert x.item() == 1


def test_an_event_of_a_capture_means_nothing_outside(dev: Any) -> None:
    event = dev.Event()
    with dev.graph(dev.CUDAGraph()):
        event.record()
    with pytest.raises(RuntimeError, match="external=True"):
        event.synchronize()
    with pytest.raises(RuntimeError, match="external=True"):
        event.wait()


def test_an_outside_event_means_nothing_in_a_capture(dev: Any) -> None:
    event = dev.current_stream().record_event()
    with pytest.raises(RuntimeError, match="recorded outside of it"), dev.graph(dev.CUDAGraph()):
        event.wait()


def test_replay_before_capture_is_an_error(dev: Any) -> None:
    with pytest.raises(RuntimeError, match="no finished capture"):
        dev.CUDAGraph().replay()


def test_random_numbers_of_a_graph_are_new_at_each_replay(dev: Any) -> None:
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        x = torch.rand(4, device="sim")
    graph.replay()
    first = x.tolist()
    graph.replay()
    assert x.tolist() != first


def test_copy_to_pinned_memory_can_be_captured(dev: Any) -> None:
    x, target = torch.ones(1, device="sim"), device.pinned(1, torch.float32, "sim")
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        target.copy_(x, non_blocking=True)
    graph.replay()
    dev.synchronize()
    assert target.item() == 1
