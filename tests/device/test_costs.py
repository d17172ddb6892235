"""Virtual time: each call costs the host, and each op the device, what the cost model says of it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from refimpl import device


def host_us(dev: Any, call: Callable[[], object], **costs: Any) -> float:
    """Host time of a call where nothing but what is named costs any."""
    free = dict.fromkeys(("launch_us", "event_us", "record_us", "wait_us", "synchronize_us", "graph_launch_us"), 0.0)
    with dev.schedule(dev.Timed(costs=dev.CostModel(**{**free, **costs}))):
        begin = dev.host_clock_us()
        call()
        return float(dev.host_clock_us() - begin)


def enter(dev: Any) -> None:
    with dev.stream(dev.default_stream()):
        pass


def name_a_region(dev: Any) -> None:
    with dev.cost("step"):
        pass


@pytest.mark.parametrize(
    ("costs", "call", "us"),
    [
        ({"view_us": 3.0}, lambda dev, x: x[1:3], 3.0),
        ({"stream_us": 3.0}, lambda dev, x: enter(dev), 6.0),
        ({"stream_us": 3.0}, lambda dev, x: dev.current_stream(), 3.0),
        ({"region_us": 3.0}, lambda dev, x: name_a_region(dev), 3.0),
        ({"clock_us": 3.0}, lambda dev, x: dev.host_clock_us(), 6.0),
        ({"launch_us": 3.0, "operators": {"add_": 5.0}}, lambda dev, x: x.add_(1), 5.0),
        ({"launch_us": 3.0, "operators": {"add_": 5.0}}, lambda dev, x: x.mul_(2), 3.0),
        ({"operators": {"copy D2D": 5.0}}, lambda dev, x: x.copy_(x), 5.0),
        (
            {"record_us": 2.0, "event_us": 3.0, "wait_us": 4.0},
            lambda dev, x: dev.Stream().wait_stream(dev.Stream()),
            9.0,
        ),
    ],
)
def test_a_call_costs_the_host_what_the_model_says(
    dev: Any, costs: dict[str, Any], call: Callable[[Any, Any], object], us: float
) -> None:
    x = torch.ones(4, device="sim")
    assert host_us(dev, lambda: call(dev, x), **costs) == pytest.approx(us)


def test_each_node_adds_to_the_launch_of_a_graph(dev: Any) -> None:
    x, graph = torch.ones(4, device="sim"), dev.CUDAGraph()
    with dev.graph(graph):
        for _ in range(10):
            x.add_(1)
    assert host_us(dev, graph.replay, graph_launch_us=5.0, graph_node_us=0.5) == pytest.approx(10.0)


def test_a_host_that_was_blocked_goes_on_a_moment_later_and_one_that_was_not_at_once(dev: Any) -> None:
    event = dev.Event()

    def blocked() -> None:
        device.sleep_stream("sim", 100.0)
        event.record()
        event.synchronize()

    assert host_us(dev, blocked, wake_us=7.0) == pytest.approx(107.0)
    assert host_us(dev, event.synchronize, wake_us=7.0) == 0.0


def test_an_idle_device_starts_an_op_a_moment_after_its_launch_and_a_busy_one_at_once(dev: Any) -> None:
    def one() -> None:
        device.sleep_stream("sim", 100.0)
        dev.synchronize()

    def two() -> None:
        device.sleep_stream("sim", 100.0)
        one()

    assert host_us(dev, one, start_us=7.0) == pytest.approx(107.0)
    assert host_us(dev, two, start_us=7.0) == pytest.approx(207.0)


def test_what_waits_for_another_stream_starts_a_moment_after_that_has_ended(dev: Any) -> None:
    here, there = dev.Stream(), dev.Stream()

    def crossing() -> None:
        for stream in (here, there):
            stream.wait_stream(here)
            with dev.stream(stream):
                device.sleep_stream("sim", 100.0)
        dev.synchronize()

    assert host_us(dev, crossing, cross_us=7.0) == pytest.approx(207.0)


def test_copies_from_and_to_the_host_have_rates_of_their_own(dev: Any) -> None:
    here, there = device.pinned(1000, torch.uint8, "sim"), torch.ones(1000, dtype=torch.uint8, device="sim")
    rates = {"h2d_us": 1.0, "d2h_us": 2.0, "h2d_bytes_per_us": 100.0, "d2h_bytes_per_us": 50.0}
    dev.synchronize()
    assert host_us(dev, lambda: there.copy_(here), **rates) == pytest.approx(11.0)
    assert host_us(dev, lambda: here.copy_(there), **rates) == pytest.approx(22.0)


def test_a_scaled_model_scales_every_time_of_the_host_or_the_device(dev: Any) -> None:
    model = dev.CostModel(operators={"add_": 5.0}, wake_us=2.0, cross_us=3.0)
    slow = model.scaled(host=2.0, device=3.0)
    assert (slow.launch("add_"), slow.launch("mul"), slow.wake_us, slow.cross_us) == (10.0, 14.0, 4.0, 9.0)
    assert slow.kernel(10**9, 0) == pytest.approx(3 * model.kernel(10**9, 0))
    assert slow.staging(10**6) == pytest.approx(2 * model.staging(10**6))


@pytest.mark.parametrize("bad", [{"operators": {"add_": -1.0}}, {"wake_us": -1.0}, {"h2d_bytes_per_us": 0.0}])
def test_a_cost_that_is_none_is_refused(dev: Any, bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="use a finite number, not negative, and above zero for a rate"):
        dev.CostModel(**bad)
