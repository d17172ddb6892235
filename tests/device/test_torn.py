"""An op may be torn: it reads at its first piece, and what it writes lands piece by piece."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from refimpl import device

SEEDS = range(60)
N = 8


def ones_on_the_device() -> torch.Tensor:
    return torch.ones(N, device="sim")


def in_place(dev: Any) -> tuple[torch.Tensor, Callable[[], Any]]:
    x = torch.zeros(N, device="sim")
    return x, lambda: x.add_(1)


def fresh(dev: Any) -> tuple[torch.Tensor, Callable[[], Any]]:
    source = torch.zeros(N, device="sim")
    held: list[torch.Tensor] = []
    with dev.graph(graph := dev.CUDAGraph()):
        held.append(source + 1)
    graph.source = source
    return held[0], graph.replay


def out(dev: Any) -> tuple[torch.Tensor, Callable[[], Any]]:
    x, a = torch.zeros(N, device="sim"), ones_on_the_device()
    return x, lambda: torch.mul(a, a, out=x)


def strided(dev: Any) -> tuple[torch.Tensor, Callable[[], Any]]:
    table = torch.zeros(N, 3, device="sim")
    return table[:, 1], lambda: table[:, 1].fill_(1)


def rows(dev: Any) -> tuple[torch.Tensor, Callable[[], Any]]:
    table, at, value = torch.zeros(3, N, device="sim"), torch.tensor([1], device="sim"), torch.ones(1, N, device="sim")
    return table[1], lambda: table.index_put_((at,), value)


def foreach(dev: Any) -> tuple[torch.Tensor, Callable[[], Any]]:
    x, y = torch.zeros(N, device="sim"), torch.zeros(2, device="sim")
    return x, lambda: torch._foreach_add_([y, x], 1)


def copy_on_the_device(dev: Any) -> tuple[torch.Tensor, Callable[[], Any]]:
    x, source = torch.zeros(N, device="sim"), ones_on_the_device()
    return x, lambda: x.copy_(source)


def copy_to_the_device(dev: Any) -> tuple[torch.Tensor, Callable[[], Any]]:
    x, source = torch.zeros(N, device="sim"), device.pinned(N, torch.float32, "sim")
    source.fill_(1)
    return x, lambda: x.copy_(source, non_blocking=True)


def captured(dev: Any) -> tuple[torch.Tensor, Callable[[], Any]]:
    x = torch.zeros(N, device="sim")
    with dev.graph(graph := dev.CUDAGraph()):
        x.fill_(1)
    return x, graph.replay


WRITES = [in_place, fresh, out, strided, rows, foreach, copy_on_the_device, copy_to_the_device, captured]


def reads(dev: Any, write: Any, schedule: Any, fence: bool = False) -> list[float]:
    """What a read on another stream sees of a write."""
    writer, reader = dev.Stream(), dev.Stream()
    target, call = write(dev)
    dev.synchronize()
    with dev.schedule(schedule):
        with dev.stream(writer):
            call()
            written = writer.record_event()
        with dev.stream(reader):
            if fence:
                reader.wait_event(written)
            seen = target + 0
        dev.synchronize()
        assert target.tolist() == [1.0] * N
    values: list[float] = seen.tolist()
    return values


def seen(dev: Any, write: Any, torn: float, fence: bool = False) -> set[tuple[float, ...]]:
    return {tuple(reads(dev, write, dev.Adversary(s, strategy="random", torn=torn), fence)) for s in SEEDS}


@pytest.mark.parametrize("write", WRITES)
def test_a_read_without_a_fence_may_see_half_of_a_write(dev: Any, write: Any) -> None:
    values = seen(dev, write, torn=1.0)
    halves = values - {(0.0,) * N, (1.0,) * N}
    assert halves
    # Pieces land in the order of memory, so that what has landed is the beginning.
    assert all(list(value) == sorted(value, reverse=True) for value in values)


@pytest.mark.parametrize("write", WRITES)
def test_without_torn_ops_a_write_is_there_or_not(dev: Any, write: Any) -> None:
    assert seen(dev, write, torn=0.0) == {(0.0,) * N, (1.0,) * N}


@pytest.mark.parametrize("write", WRITES)
def test_a_wait_is_over_after_the_last_piece(dev: Any, write: Any) -> None:
    assert seen(dev, write, torn=1.0, fence=True) == {(1.0,) * N}


def test_some_seed_tears_by_default(dev: Any) -> None:
    values = {tuple(reads(dev, in_place, dev.Adversary(seed))) for seed in range(200)}
    assert values - {(0.0,) * N, (1.0,) * N}


def test_a_split_names_its_pieces_in_the_id(dev: Any) -> None:
    # The write, the mark and the read are issued; the write does 1 of 4 pieces, the read runs, and the rest follows.
    assert reads(dev, in_place, dev.Replay("h3.1/4.2")) == [1, 1, 0, 0, 0, 0, 0, 0]
    assert reads(dev, in_place, dev.Replay("h3.1/4.1x2.2")) == [1] * 6 + [0] * 2


def test_later_ops_of_the_queue_do_not_overtake_pieces(dev: Any) -> None:
    for seed in SEEDS:
        with dev.schedule(dev.Adversary(seed, torn=1.0)):
            x = torch.zeros(N, device="sim")
            x.add_(1)
            assert (x * 2).tolist() == [2.0] * N


def test_a_torn_op_stores_what_it_changes_and_nothing_else(dev: Any) -> None:
    first, second = dev.Stream(), dev.Stream()
    for seed in SEEDS:
        table = torch.zeros(2, N, device="sim")
        rows = [torch.tensor([at], device="sim") for at in range(2)]
        values = [torch.full((1, N), at + 1.0, device="sim") for at in range(2)]
        dev.synchronize()
        with dev.schedule(dev.Adversary(seed, torn=1.0)):
            with dev.stream(first):
                table.index_put_((rows[0],), values[0])
            with dev.stream(second):
                table.index_put_((rows[1],), values[1])
            dev.synchronize()
        assert table.tolist() == [[1.0] * N, [2.0] * N]


def test_an_op_that_reads_what_it_writes_may_lose_the_update_of_another(dev: Any) -> None:
    first, second = dev.Stream(), dev.Stream()

    def sums(torn: float) -> set[float]:
        found = set()
        for seed in SEEDS:
            x = torch.zeros(1, device="sim")
            dev.synchronize()
            with dev.schedule(dev.Adversary(seed, strategy="random", torn=torn)):
                for stream in (first, second):
                    with dev.stream(stream):
                        x.add_(1)
                dev.synchronize()
            found.add(x.item())
        return found

    assert (sums(torn=0.0), sums(torn=1.0)) == ({2.0}, {1.0, 2.0})


def test_an_element_lands_whole(dev: Any) -> None:
    value = -1.2345678901234567e-89

    def write(dev: Any) -> tuple[torch.Tensor, Callable[[], Any]]:
        x = torch.full((3,), 3.1e55, dtype=torch.float64, device="sim")
        return x, lambda: x.fill_(value)

    found = set()
    for seed in SEEDS:
        writer, reader = dev.Stream(), dev.Stream()
        target, call = write(dev)
        dev.synchronize()
        with dev.schedule(dev.Adversary(seed, strategy="random", torn=1.0)):
            with dev.stream(writer):
                call()
            with dev.stream(reader):
                seen = target + 0
            dev.synchronize()
        found |= set(seen.tolist())
    assert found == {value, 3.1e55}


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x.add_(x),
        lambda x, y: torch._foreach_add_([x, x, y], 1),
        lambda x, y: torch._foreach_mul_([x, y], [y, x]),
        lambda x, y: torch._foreach_add_([x[:4], x[2:], y], 1),
        lambda x, y: x.copy_(x * 3),
        lambda x, y: torch.add(x, y, out=y),
        lambda x, y: torch.sort(x, descending=True, out=(y, torch.empty(N, dtype=torch.int64, device="sim"))),
        lambda x, y: x.view(torch.int32).bitwise_xor_(3),
        lambda x, y: torch.view_as_complex(x.view(4, 2)).conj().mul_(1j),
        lambda x, y: x.t_() if x.dim() == 2 else x.masked_fill_(y > 3, 0),
        lambda x, y: x.uniform_(),
        lambda x, y: y.normal_(),
        lambda x, y: x.scatter_add_(0, torch.tensor([1, 1, 2], device="sim"), y),
        lambda x, y: torch.nn.functional.layer_norm(x, (N,)).add_(y),
    ],
)
def test_alone_a_torn_op_does_what_a_whole_one_does(dev: Any, call: Callable[..., Any]) -> None:
    def run(torn: float) -> tuple[list[float], list[float]]:
        torch.manual_seed(3)
        with dev.schedule(dev.Adversary(1, torn=torn)):
            x, y = (torch.arange(N, dtype=torch.float32, device="sim") + base for base in (1, 3))
            call(x, y)
            return x.tolist(), y.tolist()

    assert run(1.0) == run(0.0)


def test_memory_of_a_captured_graph_is_torn_at_each_launch_anew(dev: Any) -> None:
    x = torch.zeros(N, device="sim")
    with dev.graph(graph := dev.CUDAGraph()):
        x.add_(1)
    for seed in range(5):
        with dev.schedule(dev.Adversary(seed, torn=1.0)):
            x.zero_()
            for _ in range(3):
                graph.replay()
            assert x.tolist() == [3.0] * N
