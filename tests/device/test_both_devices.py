"""The same text on both devices: what the helpers promise, and what a fence does."""

from typing import Any

import pytest
import torch

from refimpl import device
from refimpl.device.simulator.install import installed

DEVICES = ["sim", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def name(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and (installed() or not torch.cuda.is_available()):
        pytest.fail("the cuda half needs a GPU, and a process without sim: run pytest -m gpu")
    device.get(request.param).synchronize()
    return str(request.param)


def clock_of(name: str, work: Any) -> float:
    begin = device.host_clock_us(name)
    work()
    return device.host_clock_us(name) - begin


def test_host_work_takes_its_time(name: str) -> None:
    assert 499.9 <= clock_of(name, lambda: device.host_work(name, 500)) < 5000


def test_a_stall_takes_its_time_on_the_device_and_not_on_the_host(name: str) -> None:
    dev = device.get(name)
    device.sleep_stream(name, 10)
    dev.synchronize()
    assert clock_of(name, lambda: device.sleep_stream(name, 20_000)) < 5000
    assert clock_of(name, dev.synchronize) == pytest.approx(20_000, rel=0.25)


@pytest.mark.parametrize("fence", [False, True])
def test_only_a_fence_brings_the_new_value(name: str, fence: bool) -> None:
    dev = device.get(name)
    writer, reader = dev.Stream(), dev.Stream()
    buffer = torch.zeros(4, device=name)
    buffer.fill_(0) + 0  # CUDA loads a kernel at its first launch, which waits for the device and hides the race
    device.sleep_stream(name, 10)
    dev.synchronize()
    with dev.stream(writer):
        device.sleep_stream(name, 50_000)
        buffer.fill_(7)
        written = dev.Event()
        written.record()
    if fence:
        reader.wait_event(written)
    with dev.stream(reader):
        seen = buffer + 0
    dev.synchronize()
    assert seen.tolist() == ([7] * 4 if fence else [0] * 4)


def test_a_pinned_target_lands_late(name: str) -> None:
    dev = device.get(name)
    x, target = torch.ones(4, device=name), device.pinned(4, torch.float32, name)
    device.sleep_stream(name, 10)
    dev.synchronize()
    with dev.stream(dev.Stream()):
        device.sleep_stream(name, 50_000)
        target.copy_(x, non_blocking=True)
        landed = dev.Event()
        landed.record()
    early = target.tolist()
    landed.synchronize()
    assert (early, target.tolist()) == ([0] * 4, [1] * 4)


def test_wait_leaves_the_host_free(name: str) -> None:
    dev = device.get(name)
    device.sleep_stream(name, 50_000)
    event = dev.Event()
    event.record()
    stream = dev.Stream()
    assert clock_of(name, lambda: stream.wait_event(event)) < 5000
    assert not event.query()
    assert clock_of(name, event.synchronize) > 10_000


def test_a_replay_reads_its_static_input(name: str) -> None:
    dev = device.get(name)
    static = torch.zeros(4, device=name)
    dev.synchronize()
    graph = dev.CUDAGraph()
    with dev.graph(graph), device.cost(name, "step", us=100):
        out = static * 2
    for value in (3, 4):
        static.fill_(value)
        graph.replay()
        assert out.tolist() == [2 * value] * 4


def test_a_generator_repeats_itself(name: str) -> None:
    draws = [torch.rand(3, device=name, generator=device.generator(name, 7)).tolist() for _ in range(2)]
    assert draws[0] == draws[1]


def test_an_event_in_a_graph_is_recorded_by_each_replay(name: str) -> None:
    dev = device.get(name)
    x, reader = torch.zeros(1, device=name), dev.Stream()
    device.sleep_stream(name, 10)
    dev.synchronize()
    event, graph = dev.Event(external=True), dev.CUDAGraph()
    with dev.graph(graph):
        device.sleep_stream(name, 20_000)
        x.add_(1)
        event.record()
    for step in (1, 2):
        graph.replay()
        reader.wait_event(event)
        with dev.stream(reader):
            seen = x + 0
        reader.synchronize()
        assert seen.item() == step
        dev.synchronize()
