"""Any legal order, drawn by a seed."""

from typing import Any

import pytest
import torch

from refimpl.device.simulator.ops import Observer, Op

SEEDS = range(20)


class Order(Observer):
    def __init__(self) -> None:
        self.names: list[tuple[int, str]] = []
        self.done: list[Op] = []

    def on_done(self, op: Op) -> None:
        self.names.append((op.queue.id, op.name))
        self.done.append(op)


def handover(dev: Any, fence: bool) -> tuple[float, list[tuple[int, str]]]:
    producer, consumer = dev.Stream(stream_id=1), dev.Stream(stream_id=2)
    buffer = torch.zeros(1, device="sim")
    dev.synchronize()
    with dev.observe(Order()) as order:
        with dev.stream(producer):
            buffer.fill_(7)
            written = producer.record_event()
        with dev.stream(consumer):
            if fence:
                consumer.wait_event(written)
            seen = buffer + 0
        dev.synchronize()
    return seen.item(), order.names


def outcomes(dev: Any, fence: bool) -> set[float]:
    values = set()
    for seed in SEEDS:
        with dev.schedule(dev.Adversary(seed)):
            values.add(handover(dev, fence)[0])
    return values


def test_some_order_without_a_fence_gives_the_old_value_and_some_the_new(dev: Any) -> None:
    assert outcomes(dev, fence=False) == {0, 7}


def test_no_order_gets_around_a_fence(dev: Any) -> None:
    assert outcomes(dev, fence=True) == {7}


@pytest.mark.parametrize("seed", [0, 5])
def test_a_seed_names_one_order(dev: Any, seed: int) -> None:
    runs = []
    for _ in range(2):
        with dev.schedule(dev.Adversary(seed)):
            runs.append(handover(dev, fence=False))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("strategy", [None, "random", "pct", "bounded"])
@pytest.mark.parametrize("torn", [0.0, 1.0])
def test_every_order_keeps_streams_waits_and_issue(dev: Any, strategy: Any, torn: float) -> None:
    for seed in SEEDS:
        adversary = dev.Adversary(seed, strategy=strategy, torn=torn)
        with dev.schedule(adversary), dev.observe(Order()) as order:
            streams = [dev.Stream() for _ in range(3)]
            x = torch.zeros(3, device="sim")
            dev.synchronize()
            for step in range(12):
                with dev.stream(streams[step % 3]):
                    x[step % 3].add_(1)
                streams[(step + 1) % 3].wait_stream(streams[step % 3])
            dev.synchronize()
            assert x.tolist() == [4, 4, 4]
        for queue in {op.queue for op in order.done}:
            seqs = [op.seq for op in order.done if op.queue is queue]
            assert seqs == sorted(seqs)
        assert all(op.start_us >= op.submit_us for op in order.done)


def test_a_poll_loop_ends(dev: Any) -> None:
    for seed in SEEDS:
        with dev.schedule(dev.Adversary(seed)):
            x = torch.zeros(1, device="sim")
            x.add_(1)
            event = dev.current_stream().record_event()
            while not event.query():
                pass
            assert x.item() == 1


def test_some_order_reads_a_pinned_target_early(dev: Any) -> None:
    from refimpl import device

    values = set()
    for seed in SEEDS:
        with dev.schedule(dev.Adversary(seed)):
            target = device.pinned(1, torch.float32, "sim")
            target.copy_(torch.ones(1, device="sim"), non_blocking=True)
            values.add(target.item())
            dev.synchronize()
            assert target.item() == 1
    assert values == {0, 1}


def test_random_numbers_do_not_depend_on_the_order(dev: Any) -> None:
    def draw() -> list[float]:
        torch.manual_seed(3)
        streams = [dev.Stream(), dev.Stream()]
        parts = []
        for stream in streams:
            with dev.stream(stream):
                parts.append(torch.rand(2, device="sim"))
        dev.synchronize()
        return [value for part in parts for value in part.tolist()]

    expected = draw()
    for seed in SEEDS:
        with dev.schedule(dev.Adversary(seed)):
            assert draw() == expected
