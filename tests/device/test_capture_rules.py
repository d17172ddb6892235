"""What a graph capture forbids: each is an error at the call, the capture is broken, and the device goes on."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from refimpl import device

x: torch.Tensor
recorded: Any


@pytest.fixture(autouse=True)
def given(dev: Any) -> None:
    global x, recorded
    x = torch.tensor([1.0, -1.0], device="sim")
    recorded = dev.current_stream().record_event(dev.Event(enable_timing=True))
    dev.synchronize()


HOST_WAITS: dict[str, Callable[[Any], Any]] = {
    "item": lambda dev: x[0].item(),
    "tolist": lambda dev: x.tolist(),
    "a condition": lambda dev: bool(x[0] > 0),
    "printing": lambda dev: repr(x),
    "cpu": lambda dev: x.cpu(),
    "a blocking copy to pinned memory": lambda dev: device.pinned(2, torch.float32, "sim").copy_(x),
    "a copy to pageable memory": lambda dev: torch.zeros(2).copy_(x, non_blocking=True),
    "a copy from pageable memory": lambda dev: x.copy_(torch.ones(2), non_blocking=True),
    "a number for one cell": lambda dev: x.__setitem__(0, 5.0),
    "a number for rows": lambda dev: x.__setitem__(torch.zeros(1, dtype=torch.int64, device="sim"), 5.0),
    "elapsed_time": lambda dev: recorded.elapsed_time(recorded),
    "a blocking copy from the host": lambda dev: torch.ones(2).to("sim"),
    "tensor": lambda dev: torch.tensor([1, 2], device="sim"),
    "nonzero": lambda dev: x.nonzero(),
    "a mask": lambda dev: x[x > 0],
    "masked_select": lambda dev: x.masked_select(x > 0),
    "unique": lambda dev: x.unique(),
    "equal": lambda dev: torch.equal(x, x),
    "a slice by a value": lambda dev: x[: x[0].int()],
    "synchronize": lambda dev: dev.synchronize(),
    "stream synchronize": lambda dev: dev.current_stream().synchronize(),
    "stream query": lambda dev: dev.current_stream().query(),
    "event synchronize": lambda dev: recorded.synchronize(),
    "event query": lambda dev: recorded.query(),
}


@pytest.mark.parametrize("call", HOST_WAITS.values(), ids=HOST_WAITS)
def test_nothing_makes_the_host_wait_in_a_capture(dev: Any, call: Callable[[Any], Any]) -> None:
    graph = dev.CUDAGraph()
    with pytest.raises(RuntimeError, match=r"^sim: .* in a graph capture"), dev.graph(graph):
        call(dev)
    with pytest.raises(RuntimeError, match="no finished capture"):
        graph.replay()
    assert (x + 1).tolist() == [2, 0]
    with dev.graph(graph):
        y = x * 2
    graph.replay()
    assert y.tolist() == [2, -2]


@pytest.mark.parametrize("call", [HOST_WAITS["item"], HOST_WAITS["stream synchronize"]], ids=["item", "synchronize"])
def test_an_error_that_is_caught_breaks_the_capture_all_the_same(dev: Any, call: Callable[[Any], Any]) -> None:
    graph = dev.CUDAGraph()

    def captured() -> None:
        with dev.graph(graph):
            with pytest.raises(RuntimeError, match="in a graph capture"):
                call(dev)
            with pytest.raises(RuntimeError, match="broke the graph capture"):
                x.add_(1)

    with pytest.raises(RuntimeError, match="broke the graph capture"):
        captured()
    assert x.tolist() == [1, -1]
    with dev.graph(graph):
        x.add_(1)
    graph.replay()
    assert x.tolist() == [2, 0]


def test_what_leaves_the_host_free_is_captured(dev: Any) -> None:
    source, target = device.pinned(2, torch.float32, "sim"), device.pinned(2, torch.float32, "sim")
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        y = source.to("sim", non_blocking=True)
        y[:1] = 5
        y[1:] = 6
        z = torch.where(y > 5, y, 0) + torch.rand(2, device="sim") * 0
        target.copy_(z, non_blocking=True)
        assert dev.Event().query()
        dev.Event().synchronize()
    for step in (1, 2):
        source.fill_(step)
        graph.replay()
        dev.synchronize()
        assert target.tolist() == [0, 6]


def test_an_event_of_a_capture_marks_nothing_outside(dev: Any) -> None:
    inside, outside = dev.Event(enable_timing=True), dev.Event(enable_timing=True)
    outside.record()
    with dev.graph(dev.CUDAGraph()):
        x.add_(1)
        inside.record()
    for call in (inside.query, inside.synchronize, inside.wait, lambda: outside.elapsed_time(inside)):
        with pytest.raises(RuntimeError, match="it marks nothing outside of the graph"):
            call()


def test_an_event_from_outside_breaks_a_capture(dev: Any) -> None:
    outside = dev.current_stream().record_event()
    dev.synchronize()
    with pytest.raises(RuntimeError, match="recorded outside of it"), dev.graph(dev.CUDAGraph()):
        outside.wait()
    with pytest.raises(RuntimeError, match="recorded outside of it"), dev.graph(dev.CUDAGraph()):
        dev.current_stream().wait_stream(dev.Stream())


def test_a_stream_that_is_not_joined_back_is_named(dev: Any) -> None:
    side = dev.Stream()

    def captured() -> None:
        with dev.graph(dev.CUDAGraph()):
            side.wait_stream(dev.current_stream())
            with dev.stream(side):
                x.add_(1)

    with pytest.raises(RuntimeError, match="was not joined back"):
        captured()
    assert x.tolist() == [1, -1]


def test_a_capture_is_on_a_stream_of_its_own_and_alone(dev: Any) -> None:
    with pytest.raises(RuntimeError, match="on the default stream"):
        dev.CUDAGraph().capture_begin()
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        x.add_(1)
        with pytest.raises(RuntimeError, match="a second capture"):
            dev.CUDAGraph().capture_begin()
    graph.replay()
    assert x.tolist() == [2, 0]


def test_a_graph_holds_one_capture(dev: Any) -> None:
    graph = dev.CUDAGraph()
    with pytest.raises(RuntimeError, match="call capture_begin first"):
        graph.capture_end()
    with dev.graph(graph):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a graph that holds one"), dev.graph(graph):
        x.add_(10)
    graph.reset()
    with dev.graph(graph):
        x.add_(100)
    graph.replay()
    assert x.tolist() == [101, 99]


def test_a_launch_in_a_capture_becomes_a_part_of_it(dev: Any) -> None:
    inner, outer = dev.CUDAGraph(), dev.CUDAGraph()
    with dev.graph(inner):
        x.add_(1)
    with dev.graph(outer):
        x.mul_(2)
        inner.replay()
    outer.replay()
    outer.replay()
    assert x.tolist() == [7, -1]


def test_a_wrong_shape_is_an_error_that_does_not_break_the_capture(dev: Any) -> None:
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        with pytest.raises(RuntimeError, match="size"):
            x @ torch.ones(3, device="sim")
        x.add_(1)
    graph.replay()
    assert x.tolist() == [2, 0]


def test_elapsed_time_needs_two_marks_that_have_run(dev: Any) -> None:
    begin, end = dev.Event(enable_timing=True), dev.Event(enable_timing=True)
    with pytest.raises(ValueError, match="both events made with enable_timing=True"):
        begin.elapsed_time(dev.Event())
    with pytest.raises(ValueError, match="both events recorded"):
        begin.elapsed_time(end)
    begin.record()
    device.sleep_stream("sim", 2000)
    end.record()
    with pytest.raises(RuntimeError, match="has not run yet"):
        begin.elapsed_time(end)
    end.synchronize()
    assert begin.elapsed_time(end) == pytest.approx(2, rel=0.05)
