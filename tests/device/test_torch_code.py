"""Ordinary PyTorch code gives on sim what it gives on the CPU."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from refimpl import device


def mlp(to: str) -> torch.Tensor:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).to(to)
    with torch.no_grad():
        return model(torch.randn(3, 8).to(to))


def attention(to: str) -> torch.Tensor:
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 4, 5, 8).to(to) for _ in range(3))
    mask = torch.ones(5, 5, dtype=torch.bool, device=to).tril()
    scores = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(~mask, float("-inf"))
    by_hand = torch.softmax(scores, dim=-1) @ v
    return torch.cat([by_hand, functional.scaled_dot_product_attention(q, k, v, is_causal=True)])


def tables(to: str) -> torch.Tensor:
    torch.manual_seed(1)
    table = torch.zeros(6, 4, dtype=torch.int64, device=to)
    rows, columns = torch.tensor([1, 3], device=to), torch.tensor([0, 2], device=to)
    table[rows, columns] = torch.tensor([7, 8], device=to)
    table[:, 3] = torch.arange(6, device=to)
    table[2:4].add_(1)
    gathered = torch.gather(table, 1, torch.zeros(6, 1, dtype=torch.int64, device=to))
    selected = table.index_select(0, rows)
    embedded = functional.embedding(rows, table)
    table[table > 7] = -1
    assert table.nonzero().shape[1] == 2
    return torch.cat([table.flatten(), gathered.flatten(), selected.flatten(), embedded.flatten(), table.argmax(-1)])


def images(to: str) -> torch.Tensor:
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).to(to).eval()
    with torch.no_grad():
        return layers(torch.randn(1, 2, 8, 8).to(to))


def checkpoint(to: str) -> torch.Tensor:
    torch.manual_seed(1)
    saved = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).state_dict()
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).to(to).eval()
    model.load_state_dict(saved)
    with torch.inference_mode():
        return model(torch.ones(2, 3, 8, device=to)).clone()


def sorting(to: str) -> torch.Tensor:
    torch.manual_seed(1)
    x = torch.randn(4, 9).to(to)
    values, indices = x.topk(3)
    out = torch.empty(4, 9, device=to)
    torch.cumsum(x, dim=1, out=out)
    scattered = torch.zeros(4, 9, device=to).scatter_(1, indices, values)
    parts = x.split(3, dim=1)
    return torch.cat([out, scattered, x.sort(dim=1).values, torch.cat(parts[::-1], dim=1), torch.where(x > 0, x, 0)])


def training(to: str) -> torch.Tensor:
    torch.manual_seed(1)
    model = nn.Linear(4, 2).to(to)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4, device=to)).square().mean().backward()
        optimizer.step()
    return model.weight.detach()


PROGRAMS = [mlp, attention, tables, images, checkpoint, sorting, training]


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_equal_the_cpu_s_in_virtual_time(dev: Any, program: Callable[[str], torch.Tensor]) -> None:
    torch.testing.assert_close(program("sim").cpu(), program("cpu"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_equal_the_cpu_s_in_any_order(dev: Any, program: Callable[[str], torch.Tensor]) -> None:
    expected = program("cpu")
    for seed in range(5):
        with dev.schedule(dev.Adversary(seed)):
            torch.testing.assert_close(program("sim").cpu(), expected)


def test_factories_make_tensors_on_sim(dev: Any) -> None:
    made = {
        "zeros": torch.zeros(2, device="sim"),
        "full": torch.full((2,), 3, device="sim"),
        "tensor": torch.tensor([1, 2], device="sim"),
        "arange": torch.arange(2, device="sim"),
        "arange2": torch.arange(1, 7, 2, device="sim"),
        "linspace": torch.linspace(0, 1, 3, device="sim"),
        "eye": torch.eye(2, device="sim"),
        "like": torch.ones_like(torch.zeros(2, device="sim")),
        "new": torch.zeros(2, device="sim").new_tensor([5]),
    }
    assert all(t.device == torch.device("sim", 0) for t in made.values())
    assert {name: t.tolist() for name, t in made.items()} == {
        "zeros": [0, 0],
        "full": [3, 3],
        "tensor": [1, 2],
        "arange": [0, 1],
        "arange2": [1, 3, 5],
        "linspace": [0, 0.5, 1],
        "eye": [[1, 0], [0, 1]],
        "like": [1, 1],
        "new": [5],
    }


def test_random_numbers_follow_the_seed_and_the_generator(dev: Any) -> None:
    def seeded() -> list[float]:
        torch.manual_seed(5)
        return torch.randn(3, device="sim").tolist()

    def generated() -> list[float]:
        return torch.rand(3, device="sim", generator=device.generator("sim", 5)).tolist()

    assert seeded() == seeded()
    assert generated() == generated()
    assert torch.rand(3, device="sim").tolist() != torch.rand(3, device="sim").tolist()


def test_views_alias(dev: Any) -> None:
    x = torch.zeros(2, 3, device="sim")
    row, column = x[1], x[:, 2]
    row.fill_(1)
    column.add_(5)
    assert x.tolist() == [[0, 0, 5], [1, 1, 6]]
    assert row.tolist() == [1, 1, 6]


def test_printing_shows_values_and_device(dev: Any) -> None:
    assert repr(torch.ones(2, device="sim")) == "tensor([1., 1.], device='sim:0')"


def test_printing_tells_parameters_and_results_of_operators(dev: Any) -> None:
    for made in (
        lambda to: nn.Parameter(torch.ones(2, device=to)),
        lambda to: torch.ones(2, device=to).requires_grad_(),
    ):
        here, there = made("cpu"), made("sim")
        assert repr(there) == repr(here).replace(", requires_grad", ", device='sim:0', requires_grad")
        assert repr(there * 2) == repr(here * 2).replace(", grad_fn", ", device='sim:0', grad_fn")


def test_numbers_of_the_device_make_a_tensor(dev: Any) -> None:
    x = torch.arange(3.0, device="sim") + 1
    assert torch.tensor([x[0], x[1]]).tolist() == [1, 2]
    assert torch.tensor([x[0], 5.0], device="sim").tolist() == [1, 5]
    assert x.new_tensor([x[2]]).tolist() == [3]
    assert torch.as_tensor([x[0], 2.0]).device.type == "cpu"


def test_modules_can_be_copied(dev: Any) -> None:
    model = nn.Linear(2, 2).to("sim")
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.weight.zero_()
    assert isinstance(twin.weight, nn.Parameter)
    assert model.weight.abs().sum().item() > 0


def test_set_default_device_works(dev: Any) -> None:
    with torch.device("sim"):
        assert torch.zeros(2).device.type == "sim"
        assert torch.zeros(2).tolist() == [0, 0]


def test_inference_tensors_are_written_after_inference_mode_has_ended(dev: Any) -> None:
    with torch.inference_mode():
        device.sleep_stream("sim", 1000)
        x = torch.ones(2, device="sim") + 1
    assert x.tolist() == [2, 2]


def test_composite_operators_are_asynchronous_in_inference_mode(dev: Any) -> None:
    x = torch.arange(6, device="sim").view(2, 3)
    device.sleep_stream("sim", 1000)
    with torch.inference_mode():
        x.add_(1)
        flat = x.t().reshape(6)
        host = flat.cpu()
    assert (host.device.type, host.tolist()) == ("cpu", [1, 4, 2, 5, 3, 6])


def test_in_place_reshapes_change_the_shape_at_once(dev: Any) -> None:
    x = torch.arange(4, device="sim").view(1, 4)
    y = x + 1
    y.squeeze_(0)
    y.unsqueeze_(1)
    y.t_()
    assert (y.shape, y.tolist()) == ((1, 4), [[1, 2, 3, 4]])
    assert torch.mv(torch.eye(4, device="sim"), torch.ones(4, device="sim")).shape == (4,)


def test_a_vector_matrix_product_can_be_replayed(dev: Any) -> None:
    vector, matrix = torch.ones(3, device="sim"), torch.ones(3, 2, device="sim")
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        out = vector @ matrix
    graph.replay()
    graph.replay()
    dev.synchronize()
    assert out.tolist() == [3, 3]


def test_modes_of_the_host_do_not_see_the_device_at_work(dev: Any) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    x = torch.ones(2, device="sim")
    device.sleep_stream("sim", 1000)
    with Seen():
        x.add_(1)
        dev.synchronize()
    assert names == ["add_"]
