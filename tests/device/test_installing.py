"""How sim comes into a process: only when it is asked for, and never beside CUDA or another backend."""

from typing import Any

import pytest
import torch

from refimpl import device
from refimpl.device.simulator.install import installed
from tests.device.processes import in_a_fresh_process

CUDA_IS_REFUSED = "cuda: sim is installed in this process, and PyTorch cannot have both"


@pytest.mark.parametrize("modules", ["refimpl", "refimpl.device, refimpl.record, refimpl.order"])
def test_import_registers_nothing(modules: str) -> None:
    code = f"""
import torch
before = torch._C._get_privateuse1_backend_name(), torch.Stream, torch.Event, torch.Generator, torch.cuda._lazy_init
import {modules}
print(before == (torch._C._get_privateuse1_backend_name(), torch.Stream, torch.Event, torch.Generator,
    torch.cuda._lazy_init), before[0], torch.cuda.is_initialized(), hasattr(torch, "sim"))
"""
    assert in_a_fresh_process(code).strip() == "True privateuseone False False"


def test_twice_is_harmless(dev: Any) -> None:
    assert device.get("sim") is device.sim() is torch.get_device_module("sim") is device.get(torch.device("sim", 0))
    assert torch._C._get_privateuse1_backend_name() == "sim"


def test_best_installs_sim_where_there_is_no_gpu() -> None:
    code = """
import torch, refimpl.device as d
torch.cuda.is_available = lambda: False
print(d.best(), torch._C._get_privateuse1_backend_name(), torch.ones(1, device="sim").item())
"""
    assert in_a_fresh_process(code).strip() == "sim sim 1.0"


def test_best_takes_a_gpu_and_installs_nothing() -> None:
    code = """
import torch, refimpl.device as d
torch.cuda.is_available = lambda: True
print(d.best(), torch._C._get_privateuse1_backend_name())
"""
    assert in_a_fresh_process(code).strip() == "cuda privateuseone"


def test_best_stays_with_sim_once_installed(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device.best() == "sim"


def test_another_backend_is_named() -> None:
    code = "import torch, refimpl.device as d; torch.utils.rename_privateuse1_backend('npu'); d.sim()"
    assert "sim: the backend 'npu' has taken" in in_a_fresh_process(code)


def test_another_backend_after_sim_is_an_error() -> None:
    code = "import torch, refimpl.device as d; d.sim(); torch.utils.rename_privateuse1_backend('npu')"
    assert "already been set" in in_a_fresh_process(code)


def test_initialised_cuda_is_an_error() -> None:
    code = "import torch, refimpl.device as d; torch.cuda.is_initialized = lambda: True; d.sim()"
    assert "sim: CUDA is initialised in this process" in in_a_fresh_process(code)


def test_cuda_is_refused_where_sim_is_installed(dev: Any) -> None:
    asks = (
        lambda: device.get("cuda"),
        lambda: torch.ones(1, device="cuda"),
        lambda: torch.ones(1).cuda(),
        lambda: torch.cuda.synchronize(),
        lambda: torch.cuda.current_stream(),
        lambda: torch.cuda.init(),
    )
    for ask in asks:
        with pytest.raises(RuntimeError, match=CUDA_IS_REFUSED):
            ask()
    torch.manual_seed(1)
    assert not torch.cuda.is_initialized()


@pytest.mark.gpu
def test_sim_is_refused_where_cuda_is_initialised() -> None:
    if installed() or not torch.cuda.is_available():
        pytest.fail("this needs a GPU, and a process without sim: run pytest -m gpu")
    torch.ones(1, device="cuda")
    with pytest.raises(RuntimeError, match="sim: CUDA is initialised in this process"):
        device.sim()


@pytest.mark.gpu
def test_cuda_is_refused_on_a_gpu_where_sim_is_installed() -> None:
    code = "import torch, refimpl.device as d; d.sim(); print(torch.ones(1, device='sim').item()); torch.ones(1).cuda()"
    said = in_a_fresh_process(code)
    assert said.startswith("1.0")
    assert CUDA_IS_REFUSED in said
