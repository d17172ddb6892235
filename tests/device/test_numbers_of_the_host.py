"""A number stored through an index: which form copies it to the device, and so blocks the host, as on CUDA."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from refimpl import device
from refimpl.device.simulator.install import installed

SIM_AND_CUDA = ["sim", pytest.param("cuda", marks=pytest.mark.gpu)]
Store = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]
STORES: dict[str, tuple[Store, bool]] = {
    "a slice": (lambda x, rows, mask: x.__setitem__(slice(1, None), 5.0), False),
    "a row": (lambda x, rows, mask: x.__setitem__(0, 5.0), False),
    "a mask": (lambda x, rows, mask: x.__setitem__(mask, 5.0), False),
    "a cell": (lambda x, rows, mask: x.__setitem__((0, 1), 5.0), True),
    "rows": (lambda x, rows, mask: x.__setitem__(rows, 5.0), True),
    "rows, from the device": (lambda x, rows, mask: x.__setitem__(rows, x[0] * 1), False),
    "a mask, from the device": (lambda x, rows, mask: x.__setitem__(mask, x[0, :1] * 1), True),
    "masked_fill_": (lambda x, rows, mask: x.masked_fill_(mask[:, None], 5.0), False),
    "fill_": (lambda x, rows, mask: x.fill_(5.0), False),
    "arithmetic": (lambda x, rows, mask: x.mul_(torch.tensor(2.0)), False),
}


@pytest.fixture(params=SIM_AND_CUDA)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "cuda" and (installed() or not torch.cuda.is_available()):
        pytest.fail("the cuda half needs a GPU, and a process without sim: run pytest -m gpu")
    yield str(request.param)
    device.get(request.param).synchronize()


@pytest.mark.parametrize("form", STORES)
def test_the_host_is_blocked_where_a_number_has_to_be_copied(name: str, form: str) -> None:
    store, blocks = STORES[form]
    dev = device.get(name)
    x, rows = torch.zeros(4, 3, device=name), torch.tensor([1, 2], device=name)
    mask = torch.tensor([True, False, True, False], device=name)
    store(x, rows, mask)  # CUDA loads a kernel at its first launch, which waits for the device
    device.sleep_stream(name, 10)
    dev.synchronize()
    device.sleep_stream(name, 50_000)
    begin = device.host_clock_us(name)
    store(x, rows, mask)
    assert (device.host_clock_us(name) - begin > 25_000) is blocks
