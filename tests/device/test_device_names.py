"""The module of the device has the names that stream code uses, and says what it does not have."""

from typing import Any

import pytest
import torch

from refimpl import device
from refimpl.device import cuda

ORDINARY = (
    *("CUDAGraph", "Event", "OutOfMemoryError", "Stream", "StreamContext", "current_device", "current_stream"),
    *("default_stream", "device", "device_count", "device_of", "empty_cache", "get_device_capability"),
    *("get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "get_sync_debug_mode"),
    *("graph", "graph_pool_handle", "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported"),
    *("is_current_stream_capturing", "is_initialized", "is_tf32_supported", "manual_seed", "manual_seed_all"),
    *("max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved"),
    *("memory_stats", "reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_rng_state"),
    *("set_rng_state_all", "set_stream", "set_sync_debug_mode", "stream", "synchronize"),
)
OURS = ("Generator", "cost", "host_clock_us", "host_work", "pinned", "sleep_stream")


@pytest.mark.parametrize("name", ORDINARY)
def test_a_name_of_sim_is_a_name_of_cuda(dev: Any, name: str) -> None:
    assert name in dev.__all__
    assert hasattr(dev, name)
    assert getattr(cuda, name) is getattr(torch.cuda, name)


@pytest.mark.parametrize("name", OURS)
def test_what_is_added_is_added_to_both_devices(dev: Any, name: str) -> None:
    assert name in dir(dev)
    assert name in dir(cuda)
    assert not hasattr(torch.cuda, name)


def test_the_module_of_cuda_forwards_what_is_replaced_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: "replaced")
    assert cuda.synchronize() == "replaced"
    assert "current_stream" in dir(cuda)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cuda.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("name", "instead"), [("ExternalStream", r"use Stream\(\)"), ("nvtx", "cost"), ("nccl", "streams, events")]
)
def test_a_name_that_sim_lacks_says_so(dev: Any, name: str, instead: str) -> None:
    assert not hasattr(dev, name)
    with pytest.raises(AttributeError, match=f"there is no torch.sim.{name}: .*{instead}"):
        getattr(dev, name)


def test_the_helpers_are_names_of_the_device(dev: Any) -> None:
    dev.host_work(100)
    assert dev.host_clock_us() == device.host_clock_us("sim") >= 100
    dev.sleep_stream(1000)
    assert not dev.current_stream().query()
    assert dev.pinned((2, 3)).is_pinned()
    assert dev.pinned(4, torch.int64).dtype is torch.int64


def test_a_generator_of_either_kind_repeats_itself(dev: Any) -> None:
    makers = (dev.Generator, lambda: torch.Generator("sim"), lambda: torch.Generator(), lambda: torch.Generator("cpu"))
    draws = [torch.randn(3, device="sim", generator=make().manual_seed(7)).tolist() for make in makers]
    assert draws == [draws[0]] * 4
    assert isinstance(torch.Generator("sim"), torch.Generator)
    assert isinstance(torch.default_generator, torch.Generator)


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: torch.rand(4, device="sim", generator=g),
        lambda g: torch.randint(9, (4,), device="sim", generator=g),
        lambda g: torch.randperm(9, device="sim", generator=g),
        lambda g: torch.multinomial(torch.ones(9, device="sim"), 3, generator=g),
        lambda g: torch.bernoulli(torch.full((9,), 0.5, device="sim"), generator=g),
        lambda g: torch.empty(4, device="sim").normal_(generator=g),
        lambda g: torch.empty(4, device="sim").exponential_(generator=g),
        lambda g: torch.empty(4, device="sim").uniform_(generator=g),
    ],
)
def test_an_operator_that_draws_follows_its_generator_in_any_order(dev: Any, draw: Any) -> None:
    first = draw(dev.Generator().manual_seed(3)).tolist()
    with dev.schedule(dev.Adversary(seed=2)):
        generator = dev.Generator().manual_seed(3)
        again, next_ = draw(generator), draw(generator)
        assert again.tolist() == first
    assert next_.tolist() != first or len(set(first)) == 1


def test_the_state_of_the_default_generator_is_kept_and_given_back(dev: Any) -> None:
    state = dev.get_rng_state()
    first = torch.rand(3, device="sim").tolist()
    dev.set_rng_state(state)
    assert torch.rand(3, device="sim").tolist() == first
    dev.set_rng_state_all([state])
    with torch.random.fork_rng(device_type="sim"):
        assert torch.rand(3, device="sim").tolist() == first
        torch.rand(3, device="sim")
    assert torch.rand(3, device="sim").tolist() == first
    dev.manual_seed(11)
    assert dev.initial_seed() == 11
    dev.seed()
    assert dev.initial_seed() != 11


def test_properties_are_those_of_a_device_without_kernels(dev: Any) -> None:
    properties = dev.get_device_properties()
    assert (properties.name, properties.major, properties.minor) == ("simulated device", 0, 0)
    assert properties.total_memory == dev.mem_get_info()[1] > 0
    assert dev.get_device_capability("sim:0") == (0, 0)
    assert dev.is_bf16_supported()
    for ask in (dev.get_device_properties, dev.get_device_capability, dev.get_device_name, dev.get_rng_state):
        with pytest.raises(RuntimeError, match="there is one simulated device"):
            ask(1)


def test_a_context_of_a_stream_can_be_kept_and_nested(dev: Any) -> None:
    stream, outer = dev.Stream(), dev.current_stream()
    context = dev.StreamContext(stream)
    with context, dev.stream(None):
        assert dev.current_stream() == stream
        with context:
            assert dev.current_stream() == stream
        assert dev.current_stream() == stream
    assert dev.current_stream() == outer


def test_the_33rd_stream_of_a_priority_is_the_first_again(dev: Any) -> None:
    """Objects beyond the 32 of a priority share a queue, so what looks unordered is ordered."""
    first = dev.Stream()
    others = [dev.Stream() for _ in range(31)]
    assert first not in others
    assert len(set(others)) == 31
    alias = dev.Stream()
    assert alias == first
    assert alias is not first
    fast = [dev.Stream(priority=-1) for _ in range(33)]
    assert fast[32] == fast[0]
    assert {stream.priority for stream in fast} == {-1}
    assert not set(fast) & {first, *others, dev.default_stream()}
    with dev.stream(first):
        device.sleep_stream("sim", 1000)
    assert not alias.query()
    assert others[0].query()
    assert dev.Stream.priority_range() == (0, -1)


def test_a_hidden_wait_can_be_made_to_show(dev: Any) -> None:
    x = torch.ones(2, device="sim")
    hidden = (x[0].item, x.nonzero, x.cpu, x.tolist, lambda: torch.ones(2).to("sim"))
    free = (dev.synchronize, lambda: x + 1, lambda: x.to("cpu", non_blocking=True))
    assert dev.get_sync_debug_mode() == 0
    try:
        dev.set_sync_debug_mode("error")
        assert dev.get_sync_debug_mode() == 2
        for call in hidden:
            with pytest.raises(RuntimeError, match="makes the host wait"):
                call()
        for call in free:
            call()
        dev.set_sync_debug_mode(1)
        with pytest.warns(UserWarning, match="sim: nonzero makes the host wait"):
            assert x.nonzero().shape == (2, 1)
    finally:
        dev.set_sync_debug_mode("default")
    with pytest.raises(ValueError, match="use 'default', 'warn' or 'error'"):
        dev.set_sync_debug_mode("loud")
