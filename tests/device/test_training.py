"""The backward pass and optimizers on sim: gradients and steps are the CPU's, and errors are errors."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from refimpl import device
from tests.device.processes import in_a_fresh_process


def normed(to: str, dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(1)
    layers = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.RMSNorm(4), nn.GroupNorm(2, 4), nn.BatchNorm1d(4))
    layers, x = layers.to(to, dtype), torch.randn(3, 4, dtype=dtype).to(to).requires_grad_()
    layers(x).square().sum().backward()
    return [parameter.grad.cpu() for parameter in (x, *layers.parameters()) if parameter.grad is not None]


def attended(to: str, dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(1)
    table = torch.randn(7, 8, dtype=dtype).to(to).requires_grad_()
    tokens = torch.tensor([[1, 2, 3]], device=to)
    x = F.embedding(tokens, table).view(1, 3, 2, 4).transpose(1, 2)
    y = F.scaled_dot_product_attention(x, x, x, is_causal=True).transpose(1, 2).reshape(3, 8)
    F.cross_entropy(y, torch.tensor([0, 5, 7], device=to)).backward()
    assert table.grad is not None
    return [table.grad.cpu()]


def transformed(to: str, dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(1)
    x = torch.randn(8, dtype=torch.float64).to(to, dtype).requires_grad_()
    torch.fft.hfft(x.float()).sum().backward()
    assert x.grad is not None
    return [x.grad.cpu()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("program", [normed, attended, transformed])
def test_gradients_equal_the_cpu_s(dev: Any, program: Callable[..., list[torch.Tensor]], dtype: torch.dtype) -> None:
    """In bfloat16 the CPU's fused attention rounds at other places."""
    atol, rtol = (1e-5, 1e-5) if dtype is torch.float32 else (1e-2, 2e-2)
    torch.testing.assert_close(program("sim", dtype), program("cpu", dtype), atol=atol, rtol=rtol)


OPTIMIZERS = [
    (name, options)
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adafactor")
    for options in ({}, {"foreach": True}, {"fused": True})
    if not ("fused" in options and name in ("RMSprop", "Adafactor"))
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=str)
def test_a_step_of_an_optimizer_equals_the_cpu_s(dev: Any, name: str, options: dict[str, bool]) -> None:
    def trained(to: str) -> torch.Tensor:
        torch.manual_seed(1)
        model = nn.Linear(4, 2).to(to)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1, **options)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(2, 4, device=to)).square().mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return model.weight.detach().cpu()

    torch.testing.assert_close(trained("sim"), trained("cpu"))


def test_the_backward_pass_leaves_the_host_free(dev: Any) -> None:
    x = torch.ones(4, device="sim", requires_grad=True)
    y = F.rms_norm(x, (4,)).sum()
    device.sleep_stream("sim", 50_000)
    y.backward()
    assert dev.host_clock_us() < 5000


def test_the_backward_pass_runs_on_the_current_stream(dev: Any) -> None:
    """CUDA would run it on the stream of the forward."""

    class Queues(dev.Observer):  # type: ignore[misc]
        def on_issue(self, op: Any) -> None:
            seen.add(op.queue.id)

    seen: set[int] = set()
    x, side = torch.ones(4, device="sim", requires_grad=True), dev.Stream()
    with dev.stream(side):
        y = (x * 2).sum()
    with dev.observe(Queues()):
        y.backward()
    assert seen == {0}


def test_an_error_in_the_backward_of_a_function_is_raised_as_it_is(dev: Any) -> None:
    class Resized(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient.clone().resize_(1)

    x = torch.ones(4, device="sim", requires_grad=True)
    with pytest.raises(NotImplementedError, match="resize_ is not supported"):
        Resized.apply(x).sum().backward()


def test_an_operator_that_fails_in_the_backward_pass_is_quoted_and_the_process_goes_on() -> None:
    code = """
import torch
from refimpl import device
from refimpl.device.simulator.operators import plans
device.sim()
x = torch.ones(4, device="sim", requires_grad=True)
y = torch.sin(x).sum()
plans._SPECIAL_LAYOUTS = ("cos",)
for multithreaded in (True, False):
    with torch.autograd.set_multithreading_enabled(multithreaded):
        try:
            y.backward(retain_graph=True)
        except RuntimeError as error:
            print("caught", error)
print((x + 1).tolist())
"""
    said = in_a_fresh_process(code)
    assert said.count("caught Unable to cast (sim: cos is not supported") == 2
    assert said.endswith("[2.0, 2.0, 2.0, 2.0]\n")
