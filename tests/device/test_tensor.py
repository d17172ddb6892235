"""What a tensor on sim does beside operators: its data, its memory, saving, formatting, pinning."""

import io
import pickle
from typing import Any

import pytest
import torch
from torch import nn

from refimpl import device
from refimpl.record import record


def test_the_shell_follows_new_data(dev: Any) -> None:
    x = nn.Parameter(torch.zeros(2, device="sim"))
    x.data = torch.ones(3, device="sim") * 2
    assert x.tolist() == [2, 2, 2]
    assert (x + 1).tolist() == [3, 3, 3]


def test_new_data_is_shared_memory(dev: Any) -> None:
    x, y = torch.zeros(2, device="sim"), torch.ones(2, device="sim")
    x.data = y
    y.add_(1)
    assert x.tolist() == [2, 2]
    with record("sim") as recording:
        x.add_(1)
        y.add_(1)
    assert len(recording.program().buffers) == 1


def test_an_op_queued_before_keeps_the_memory_it_was_issued_with(dev: Any) -> None:
    x, old = torch.zeros(2, device="sim"), torch.zeros(2, device="sim")
    x.data = old
    device.sleep_stream("sim", 1000)
    x.add_(1)
    x.data = torch.full((2,), 5.0, device="sim")
    assert (old.tolist(), x.tolist()) == ([1, 1], [5, 5])


def test_modules_take_vectors_and_types(dev: Any) -> None:
    model = nn.Linear(2, 1).to("sim")
    nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]).to("sim"), model.parameters())
    assert model.half()(torch.ones(1, 2, device="sim", dtype=torch.float16)).tolist() == [[6]]


def test_data_of_another_device_is_named(dev: Any) -> None:
    with pytest.raises(TypeError, match="a tensor on cpu as the data"):
        torch.zeros(2, device="sim").data = torch.zeros(2)


def test_a_checkpoint_is_loaded_on_either_device(dev: Any) -> None:
    model = nn.Linear(3, 2).to("sim")
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3, device="sim")).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    for where, kind in ((None, "sim"), ("cpu", "cpu")):
        file.seek(0)
        loaded = torch.load(file, map_location=where)
        assert loaded["optimizer"]["state"][0]["exp_avg"].device.type == kind
        assert loaded["model"]["weight"].device.type == kind
        assert torch.equal(loaded["model"]["weight"].cpu(), model.weight.detach().cpu())


def test_a_pickled_module_has_parameters(dev: Any) -> None:
    model = nn.Linear(3, 2).to("sim")
    weight = pickle.loads(pickle.dumps(model)).weight
    assert isinstance(weight, nn.Parameter)
    assert weight.requires_grad
    assert torch.equal(weight, model.weight)


def test_a_number_is_formatted(dev: Any) -> None:
    assert f"{torch.tensor(1.23456, device='sim'):.3f}" == "1.235"
    assert f"{torch.ones(1, device='sim')}" == "tensor([1.], device='sim:0')"


def test_memory_counts_what_is_alive_once(dev: Any) -> None:
    before = dev.memory_allocated()
    x = torch.ones(256, device="sim")
    view = x[1:]
    assert dev.memory_allocated() - before == 1024
    del x
    assert dev.memory_allocated() - before == 1024
    del view
    dev.empty_cache()
    assert dev.memory_allocated() == before


def test_pin_memory_makes_a_copy_asynchronous(dev: Any) -> None:
    source = torch.ones(2)
    pinned = source.pin_memory()
    assert (source.is_pinned(), pinned.is_pinned(), pinned.pin_memory() is pinned) == (False, True, True)
    device.sleep_stream("sim", 1000)
    moved = pinned.to("sim", non_blocking=True)
    pinned.fill_(7)
    assert moved.tolist() == [7, 7]


def test_a_loader_pins(dev: Any) -> None:
    loader = torch.utils.data.DataLoader(torch.arange(4.0), batch_size=2, pin_memory=True)  # type: ignore[arg-type]
    assert [batch.is_pinned() for batch in loader] == [True, True]
