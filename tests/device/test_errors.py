"""What does not work says so in one sentence."""

import subprocess
import sys
from typing import Any

import pytest
import torch

from refimpl import device


def test_an_unknown_device_is_named(dev: Any) -> None:
    with pytest.raises(ValueError, match="'tpu' is not known"):
        device.get("tpu")


def test_cuda_is_refused_where_sim_is_installed(dev: Any) -> None:
    with pytest.raises(RuntimeError, match="process of its own"):
        device.get("cuda")


def test_best_stays_with_sim_once_installed(dev: Any) -> None:
    assert device.best() == "sim"


def test_get_is_the_module_torch_knows_and_twice_is_harmless(dev: Any) -> None:
    assert device.get("sim") is device.sim() is torch.get_device_module("sim") is device.get(torch.device("sim", 0))


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def test_import_registers_nothing() -> None:
    code = "import torch, refimpl.device; print(torch._C._get_privateuse1_backend_name(), torch.cuda.is_initialized())"
    assert in_a_fresh_process(code).strip() == "privateuseone False"


def test_another_backend_is_named() -> None:
    code = "import torch, refimpl.device as d; torch.utils.rename_privateuse1_backend('npu'); d.sim()"
    assert "the backend 'npu' has taken" in in_a_fresh_process(code)


def test_initialised_cuda_is_an_error() -> None:
    code = "import torch, refimpl.device as d; torch.cuda.is_initialized = lambda: True; d.sim()"
    assert "CUDA is initialised in this process" in in_a_fresh_process(code)


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
    with pytest.raises(NotImplementedError, match="_thnn_fused_gru_cell is not supported"):
        torch.nn.GRU(2, 2).to("sim")(torch.ones(1, 1, 2, device="sim"))
    with pytest.raises(TypeError, match="numpy"):
        x.numpy()


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
