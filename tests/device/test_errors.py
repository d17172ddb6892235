"""What does not work says so in one sentence."""

import copy
import pickle
from typing import Any

import pytest
import torch

from refimpl import device


def test_an_unknown_device_is_named(dev: Any) -> None:
    with pytest.raises(ValueError, match="'tpu' is not known"):
        device.get("tpu")


def test_mixed_devices_name_the_operator(dev: Any) -> None:
    with pytest.raises(RuntimeError, match="sim: add of tensors on sim and on cpu"):
        torch.ones(2, device="sim") + torch.ones(2)


def test_wrong_shapes_fail_at_the_call(dev: Any) -> None:
    with pytest.raises(RuntimeError, match="reduction dim"):
        torch.ones(2, 3, device="sim") @ torch.ones(2, 3, device="sim")
    with pytest.raises(RuntimeError, match="broadcast"):
        torch.ones(2, device="sim").add_(torch.ones(3, device="sim"))


def test_a_failure_on_the_device_names_the_operator_when_the_host_asks(dev: Any) -> None:
    device.sleep_stream("sim", 1000)
    torch.ones(2, device="sim").index_select(0, torch.tensor([5]).to("sim", non_blocking=True))
    with pytest.raises(RuntimeError, match="sim: index_select failed on stream 0"):
        dev.synchronize()
    dev.synchronize()


def test_unsupported_operators_are_named(dev: Any) -> None:
    x = torch.ones(2, device="sim")
    with pytest.raises(NotImplementedError, match="resize_ is not supported"):
        x.resize_(4)
    with pytest.raises(TypeError, match="numpy"):
        x.numpy()


@pytest.mark.parametrize("name", ["GRU", "LSTM", "GRUCell", "LSTMCell"])
def test_a_fused_cell_is_refused_when_it_is_issued(dev: Any, name: str) -> None:
    module = getattr(torch.nn, name)(2, 2).to("sim")
    with dev.schedule(dev.Adversary(0, strategy="bounded", preemptions=0)):
        x = torch.ones(1, 2, device="sim")
        with pytest.raises(NotImplementedError, match=r"_thnn_fused_.*_cell is not supported.* use nn.RNN"):
            module(x)


def test_an_operator_without_a_cpu_kernel_is_refused_when_it_is_issued(dev: Any) -> None:
    with dev.schedule(dev.Adversary(0, strategy="bounded", preemptions=0)):
        x = torch.ones(2, 2, dtype=torch.bfloat16, device="sim")
        with pytest.raises(NotImplementedError, match="mm is not supported: PyTorch has no CPU kernel"):
            torch.mm(x, x, out_dtype=torch.float32)


def test_out_of_the_wrong_shape_is_named(dev: Any) -> None:
    with pytest.raises(RuntimeError, match="does not resize"):
        torch.add(torch.ones(2, device="sim"), 1, out=torch.empty(0, device="sim"))


def test_a_time_within_a_time_is_an_error(dev: Any) -> None:
    with pytest.raises(RuntimeError, match="one of the two may state a time"), dev.cost("a", us=1), dev.cost("b", us=1):
        pass


@pytest.mark.parametrize("us", [-1.0, float("nan"), float("inf")])
def test_a_cost_that_is_no_time_is_an_error(dev: Any, us: float) -> None:
    with pytest.raises(ValueError, match="microseconds"), dev.cost("a", us=us):
        pass


def test_a_cost_model_refuses_what_is_no_rate(dev: Any) -> None:
    with pytest.raises(ValueError, match="flops_per_us"):
        dev.CostModel(flops_per_us=0)


@pytest.mark.parametrize("costs", [{"launch_us": "a"}, {"kernel_us": None}, {"operators": {"add": True}}])
def test_a_cost_is_a_number(dev: Any, costs: Any) -> None:
    with pytest.raises(ValueError, match=r"CostModel\(.*: use a finite number"):
        dev.CostModel(**costs)


def test_the_costs_of_operators_are_a_dict(dev: Any) -> None:
    with pytest.raises(TypeError, match=r"operators=None\): use a dict"):
        dev.CostModel(operators=None)


@pytest.mark.parametrize("us", [-1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_an_error(dev: Any, us: float) -> None:
    for call in (device.host_work, device.sleep_stream):
        with pytest.raises(ValueError, match="microseconds"):
            call("sim", us)


@pytest.mark.parametrize("name", ["Stream", "Event"])
def test_the_streams_that_pytorch_cannot_simulate_name_those_that_can(dev: Any, name: str) -> None:
    for arguments in ({}, {"device": "sim"}):
        with pytest.raises(NotImplementedError, match=rf"use torch.get_device_module\('sim'\).{name}\(\)"):
            getattr(torch, name)(**arguments)


def test_the_streams_of_other_devices_stay_as_they_are(dev: Any) -> None:
    assert isinstance(torch.Stream(device="cpu"), torch.Stream)
    assert not isinstance(dev.Stream(), torch.Stream)


def test_what_is_no_stream_is_named(dev: Any) -> None:
    calls = (dev.set_stream, dev.Event().record, dev.Event().wait, dev.current_stream().wait_stream)
    for call in calls:
        with pytest.raises(TypeError, match="sim: 'a' is not a stream of sim"):
            call("a")
    with pytest.raises(TypeError, match="sim: 'a' is not a stream of sim"), dev.stream("a"):
        pass


def test_what_is_no_event_is_named(dev: Any) -> None:
    stream, event = dev.Stream(), dev.Event(enable_timing=True)
    for call in (stream.wait_event, event.elapsed_time):
        with pytest.raises(TypeError, match="sim: None is not an event of sim"):
            call(None)
    with pytest.raises(TypeError, match="sim: 3 is not an event of sim"):
        stream.record_event(3)
    for given in (None, 3):
        with pytest.raises(TypeError, match=f"sim: {given} is not a stream of sim"):
            torch.ones(2, device="sim").record_stream(given)


@pytest.mark.parametrize("id_", [-1, "a", 66, True])
def test_a_streams_id_is_that_of_a_stream_that_there_is(dev: Any, id_: Any) -> None:
    with pytest.raises(ValueError, match=r"Stream\(stream_id=.*: use the stream_id of a stream"):
        dev.Stream(stream_id=id_)


def test_a_stream_is_of_the_device_and_has_a_number_for_its_priority(dev: Any) -> None:
    for other in ("cuda", torch.device("cpu")):
        with pytest.raises(RuntimeError, match=r"Stream\(device=.*\) is of another device: use 'sim'"):
            dev.Stream(device=other)
    with pytest.raises(TypeError, match=r"Stream\(priority='high'\): use 0, or -1"):
        dev.Stream(priority="high")


def test_an_event_cannot_be_copied(dev: Any) -> None:
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="share the event"):
            duplicate(dev.Event())


def test_no_stream_leaves_the_current_one(dev: Any) -> None:
    stream = dev.Stream()
    with dev.stream(stream):
        dev.set_stream(None)
        assert dev.current_stream() == stream


def test_a_second_device_is_an_error(dev: Any) -> None:
    asks = (
        lambda: torch.ones(2, device="sim:1"),
        lambda: torch.ones(2).to("sim:1"),
        lambda: torch.ones(2, device="sim").to(torch.device("sim", 1)),
        lambda: dev.set_device(1),
        lambda: dev.Stream(device="sim:1"),
        lambda: dev.device(1).__enter__(),
        lambda: device.get("sim:1"),
    )
    for ask in asks:
        with pytest.raises(RuntimeError, match="there is one simulated device"):
            ask()
    dev.set_device(0)
    with dev.device("sim:0"):
        assert torch.ones(2, device="sim:0").device.index == 0


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True])
def test_a_seed_is_an_integer_from_zero(dev: Any, seed: Any) -> None:
    with pytest.raises(ValueError, match="use an integer from 0"):
        dev.Adversary(seed)


def test_autocast_says_that_it_is_disabled(dev: Any) -> None:
    x = torch.ones(2, 2, device="sim")
    with pytest.warns(UserWarning, match="Disabling autocast"), torch.autocast("sim"):
        assert (x @ x).dtype is torch.float32
    with torch.autocast("sim", enabled=False):
        assert (x @ x).dtype is torch.float32
