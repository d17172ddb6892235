"""Operator by operator: what sim gives is what the CPU gives, with its type, in virtual time and in another order."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

Made = Callable[..., torch.Tensor]


def maker(to: str) -> tuple[Made, Made]:
    """Floats and small integers on a device, the same in every call."""
    generator = torch.Generator("cpu").manual_seed(1)

    def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float32).to(to, dtype)

    def integers(high: int, *shape: int) -> torch.Tensor:
        return torch.randint(high, shape, generator=generator).to(to)

    return floats, integers


def written(x: torch.Tensor, *steps: Callable[[torch.Tensor], Any]) -> torch.Tensor:
    """`x` after steps that write into it."""
    for step in steps:
        step(x)
    return x


FACTORIES: dict[str, Callable[[str], Any]] = {
    "zeros": lambda to: torch.zeros(2, 3, device=to),
    "ones": lambda to: torch.ones(2, dtype=torch.bfloat16, device=to),
    "full": lambda to: torch.full((2,), 7, device=to),
    "tensor": lambda to: torch.tensor([[1.5, 2], [3, 4]], device=to),
    "scalar_tensor": lambda to: torch.tensor(3, device=to),
    "as_tensor": lambda to: torch.as_tensor([1, 2], device=to),
    "arange": lambda to: torch.arange(1, 9, 3, device=to),
    "arange of floats": lambda to: torch.arange(0.0, 1.0, 0.25, device=to),
    "linspace": lambda to: torch.linspace(0, 1, 5, device=to),
    "logspace": lambda to: torch.logspace(0, 1, 3, device=to),
    "eye": lambda to: torch.eye(3, 2, device=to),
    "zeros_like": lambda to: torch.zeros_like(torch.ones(2, 2, device=to).t()),
    "full_like": lambda to: torch.full_like(torch.ones(2, device=to), 5, dtype=torch.int32),
    "new_zeros": lambda to: torch.ones(2, device=to).new_zeros(3),
    "new_full": lambda to: torch.ones(2, device=to).new_full((2,), 4),
    "new_tensor": lambda to: torch.ones(2, device=to).new_tensor([9]),
    "tril_indices": lambda to: torch.tril_indices(3, 3, device=to),
    "complex": lambda to: torch.complex(torch.ones(2, device=to), torch.zeros(2, device=to)),
    "empty_like, filled": lambda to: torch.empty_like(torch.ones(2, 3, device=to)).fill_(2),
    "empty_strided, filled": lambda to: torch.empty_strided((2, 3), (1, 2), device=to).fill_(2),
    "one_hot": lambda to: F.one_hot(torch.tensor([0, 2], device=to), 3),
    "meshgrid": lambda to: torch.meshgrid(torch.arange(2, device=to), torch.arange(3, device=to), indexing="ij"),
}

INDEXING: dict[str, Callable[[Made, Made], Any]] = {
    "element": lambda f, i: f(3, 4)[1, -1],
    "slices": lambda f, i: f(6, 4)[1:5:2, -3:],
    "ellipsis and None": lambda f, i: f(2, 3, 4)[..., None, 1],
    "integers": lambda f, i: f(6, 4)[i(6, 3)],
    "integers in two dimensions": lambda f, i: f(6, 4)[i(6, 3), i(4, 3)],
    "integers and a slice": lambda f, i: f(6, 4, 2)[:, i(4, 3)],
    "a list": lambda f, i: f(6, 4)[[0, -1]],
    "mask": lambda f, i: f(20)[i(2, 20).bool()],
    "comparison": lambda f, i: (lambda x: x[x > 0])(f(9)),
    "write element": lambda f, i: written(f(3, 4), lambda x: x.__setitem__((0, 1), 5)),
    "write slice": lambda f, i: written(f(3, 4), lambda x: x.__setitem__(slice(1, None), 5)),
    "write rows": lambda f, i: written(f(6, 4), lambda x: x.__setitem__(i(6, 1), f(1, 4))),
    "write cells": lambda f, i: written(f(6, 4), lambda x: x.__setitem__((i(6, 1), i(4, 1)), f(1))),
    "write mask": lambda f, i: written(f(9), lambda x: x.__setitem__(x > 0, -1)),
    "write mask with tensor": lambda f, i: written(
        f(3, 4), lambda x: x.__setitem__(x > 0, f(1).expand(12)[: int((x > 0).sum())])
    ),
    "index_put, accumulated": lambda f, i: f(6).index_put((i(6, 8),), f(8), accumulate=True),
    "index_copy": lambda f, i: f(6, 2).index_copy(0, torch.arange(2, device=i(1, 1).device), f(2, 2)),
    "index_add": lambda f, i: f(6, 2).index_add(0, i(6, 4), f(4, 2)),
    "index_fill": lambda f, i: f(6, 2).index_fill(0, i(6, 2), 7),
    "index_select": lambda f, i: f(6, 2).index_select(1, i(2, 3)),
    "gather": lambda f, i: f(4, 5).gather(1, i(5, 4, 2)),
    "take_along_dim": lambda f, i: (lambda x: x.take_along_dim(x.argsort(1), 1))(f(4, 5)),
    "scatter": lambda f, i: f(4, 5).scatter(1, torch.arange(2, device=i(1, 1).device).expand(4, 2), f(4, 2)),
    "scatter of a number": lambda f, i: f(4, 5).scatter(1, i(5, 4, 2), 3.0),
    "scatter_add": lambda f, i: f(4, 5).scatter_add(1, i(5, 4, 2), f(4, 2)),
    "scatter_reduce": lambda f, i: f(4, 5).scatter_reduce(1, i(5, 4, 2), f(4, 2), "amax"),
    "masked_fill": lambda f, i: f(4, 5).masked_fill(i(2, 4, 5).bool(), float("-inf")),
    "masked_select": lambda f, i: f(4, 5).masked_select(i(2, 4, 5).bool()),
    "masked_scatter": lambda f, i: f(10).masked_scatter(i(2, 10).bool(), f(10)),
    "nonzero": lambda f, i: i(2, 4, 5).nonzero(),
    "argwhere": lambda f, i: torch.argwhere(i(2, 9)),
    "where": lambda f, i: torch.where(i(2, 4).bool(), f(4), 0.0),
    "where of one": lambda f, i: torch.where(i(2, 9).bool()),
    "take and put": lambda f, i: written(f(9), lambda x: x.put_(i(9, 1), f(1))).take(i(9, 4)),
    "embedding": lambda f, i: F.embedding(i(6, 2, 3), f(6, 4)),
    "embedding_bag": lambda f, i: F.embedding_bag(i(6, 2, 3), f(6, 4), mode="mean"),
    "repeat_interleave": lambda f, i: f(3, 2).repeat_interleave(i(3, 3), dim=0),
    "bucketize": lambda f, i: torch.bucketize(f(5), f(4).sort().values),
    "searchsorted": lambda f, i: torch.searchsorted(f(4).sort().values, f(5)),
    "tril": lambda f, i: f(4, 4).tril(-1),
    "roll": lambda f, i: f(4, 4).roll(1, 0),
    "flip": lambda f, i: f(4, 4).flip(0, 1),
}

ARITHMETIC: dict[str, Callable[[Made, Made], Any]] = {
    "sum": lambda f, i: f(3, 4).sum(1, keepdim=True),
    "mean": lambda f, i: f(3, 4).mean(),
    "var_mean": lambda f, i: torch.var_mean(f(3, 4), 1),
    "amax": lambda f, i: f(3, 4).amax(0),
    "max": lambda f, i: tuple(f(3, 4).max(1)),
    "argmax": lambda f, i: f(3, 4).argmax(-1),
    "any and all": lambda f, i: (i(2, 3, 4).bool().any(0), i(2, 3, 4).bool().all(1)),
    "cumsum": lambda f, i: i(9, 3, 4).cumsum(1),
    "cumprod": lambda f, i: f(3, 4).cumprod(0),
    "logsumexp": lambda f, i: f(3, 4).logsumexp(1),
    "norm": lambda f, i: f(3, 4).norm(dim=1),
    "topk": lambda f, i: tuple(f(4, 9).topk(3)),
    "sort": lambda f, i: tuple(f(4, 9).sort(descending=True, stable=True)),
    "argsort": lambda f, i: f(4, 9).argsort(1),
    "kthvalue": lambda f, i: tuple(f(4, 9).kthvalue(2)),
    "unique": lambda f, i: i(5, 20).unique(return_inverse=True, return_counts=True),
    "unique_consecutive": lambda f, i: i(2, 20).unique_consecutive(),
    "bincount": lambda f, i: i(5, 20).bincount(minlength=7),
    "histc": lambda f, i: f(20).histc(4, -1, 1),
    "isin": lambda f, i: torch.isin(i(9, 5), i(9, 4)),
    "matmul": lambda f, i: f(2, 3, 4) @ f(4, 5),
    "vector product": lambda f, i: f(4) @ f(4),
    "mv": lambda f, i: f(3, 4) @ f(4),
    "bmm": lambda f, i: torch.bmm(f(2, 3, 4), f(2, 4, 5)),
    "baddbmm": lambda f, i: torch.baddbmm(f(2, 3, 5), f(2, 3, 4), f(2, 4, 5), beta=0.5),
    "addmm": lambda f, i: torch.addmm(f(5), f(3, 4), f(4, 5)),
    "einsum": lambda f, i: torch.einsum("bij,bjk->ik", f(2, 3, 4), f(2, 4, 5)),
    "outer": lambda f, i: torch.outer(f(3), f(4)),
    "linear": lambda f, i: F.linear(f(2, 3, 4), f(5, 4), f(5)),
    "matmul of bfloat16": lambda f, i: f(3, 4, dtype=torch.bfloat16) @ f(4, 5, dtype=torch.bfloat16),
    "float16": lambda f, i: f(3, 4, dtype=torch.float16) * 2 + 1,
    "int8": lambda f, i: i(9, 4).to(torch.int8) + torch.tensor(3, dtype=torch.int8),
    "bool": lambda f, i: i(2, 4).bool() ^ i(2, 4).bool(),
    "promotion": lambda f, i: i(9, 4) + 0.5,
    "division": lambda f, i: (i(9, 4) // 2, i(9, 4) / 2, i(9, 4) % 4),
    "bits": lambda f, i: (i(9, 4) & 3, i(9, 4) << 1),
    "clamp": lambda f, i: f(3, 4).clamp(-0.5, 0.5),
    "lerp": lambda f, i: torch.lerp(f(4), f(4), 0.3),
    "nan_to_num": lambda f, i: (f(4) / 0).nan_to_num(),
    "addcmul": lambda f, i: torch.addcmul(f(4), f(4), f(4), value=0.5),
    "out": lambda f, i: written(f(4), lambda x: torch.mul(f(4), 2, out=x)),
    "in place": lambda f, i: written(f(4), lambda x: x.mul_(2).add_(f(4)).exp_()),
    "in place on a view": lambda f, i: written(f(3, 4), lambda x: x[:, 1].zero_(), lambda x: x.t()[0].add_(1)),
    "in place with promotion": lambda f, i: written(f(4), lambda x: x.add_(i(9, 4))),
    "foreach": lambda f, i: torch._foreach_add([f(2), f(3)], [f(2), f(3)], alpha=2),
    "foreach in place": lambda f, i: (lambda xs: (torch._foreach_mul_(xs, 2), xs)[1])([f(2), f(3)]),
    "complex": lambda f, i: torch.view_as_complex(f(3, 2)) * 2j,
    "conjugate": lambda f, i: torch.view_as_complex(f(3, 3, 2)).mH @ torch.view_as_complex(f(3, 3, 2)),
    "conjugate in place": lambda f, i: written(torch.view_as_complex(f(3, 2)).conj(), lambda x: x.add_(1j)),
    "imaginary part in place": lambda f, i: written(torch.view_as_complex(f(3, 2)).conj(), lambda x: x.imag.add_(1)),
    "pinv of complex": lambda f, i: torch.linalg.pinv(torch.view_as_complex(f(3, 3, 2))),
    "fft": lambda f, i: torch.fft.rfft(f(8)),
    "solve": lambda f, i: torch.linalg.solve(f(3, 3), f(3, 1)),
    "cholesky": lambda f, i: (lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(3, device=x.device)))(f(3, 3)),
    "equal": lambda f, i: f(1) * torch.equal(f(3), f(3)),
    "allclose": lambda f, i: f(1) * torch.allclose(f(3), f(3)),
    "cdist": lambda f, i: torch.cdist(f(3, 4), f(2, 4)),
}

SHAPES: dict[str, Callable[[Made, Made], Any]] = {
    "view and permute": lambda f, i: f(2, 6).view(2, 3, 2).permute(2, 0, 1),
    "reshape of a transpose": lambda f, i: f(2, 6).t().reshape(4, 3),
    "contiguous": lambda f, i: f(2, 6).t().contiguous(),
    "channels last": lambda f, i: f(1, 2, 3, 3).to(memory_format=torch.channels_last) + 1,
    "expand": lambda f, i: f(3, 1).expand(3, 4) + 1,
    "repeat": lambda f, i: f(2).repeat(2, 2),
    "split": lambda f, i: f(7, 2).split([3, 4]),
    "chunk": lambda f, i: f(7, 2).chunk(3),
    "unbind": lambda f, i: f(3, 2).unbind(0),
    "cat": lambda f, i: torch.cat([f(2, 2), f(1, 2)]),
    "stack": lambda f, i: torch.stack([f(2), f(2)], 1),
    "as_strided": lambda f, i: f(9).as_strided((2, 2), (3, 1), 1),
    "unfold": lambda f, i: f(9).unfold(0, 3, 2),
    "diagonal": lambda f, i: f(3, 3).diagonal() + 0,
    "view of another type": lambda f, i: f(4).view(torch.int32),
    "view_as_real": lambda f, i: torch.view_as_real(torch.view_as_complex(f(3, 2))),
    "squeeze": lambda f, i: f(1, 3, 1).squeeze(),
    "movedim": lambda f, i: f(2, 3, 4).movedim(0, -1),
    "pad": lambda f, i: F.pad(f(2, 3), (1, 2), value=5),
    "flatten": lambda f, i: f(2, 3, 4).flatten(1),
    "type": lambda f, i: f(4).to(torch.float64).half().int(),
}

LAYERS: dict[str, Callable[[Made, Made], Any]] = {
    "softmax": lambda f, i: f(3, 4).softmax(-1),
    "softmax in another type": lambda f, i: F.softmax(f(3, 4, dtype=torch.bfloat16), -1, dtype=torch.float32),
    "log_softmax": lambda f, i: f(3, 4).log_softmax(-1),
    "gelu": lambda f, i: F.gelu(f(4), approximate="tanh"),
    "silu": lambda f, i: F.silu(f(4)),
    "glu": lambda f, i: F.glu(f(4)),
    "layer_norm": lambda f, i: F.layer_norm(f(3, 4), (4,), f(4), f(4)),
    "layer_norm of bfloat16": lambda f, i: F.layer_norm(f(3, 4, dtype=torch.bfloat16), (4,)),
    "rms_norm": lambda f, i: F.rms_norm(f(3, 4), (4,), f(4)),
    "group_norm": lambda f, i: F.group_norm(f(2, 4, 3), 2, f(4), f(4)),
    "batch_norm": lambda f, i: F.batch_norm(f(3, 4), f(4), f(4).abs(), training=False),
    "conv1d": lambda f, i: F.conv1d(f(1, 2, 8), f(3, 2, 3), padding=1),
    "conv2d": lambda f, i: F.conv2d(f(1, 2, 6, 6), f(3, 2, 3, 3), f(3), stride=2),
    "max_pool2d": lambda f, i: F.max_pool2d(f(1, 2, 6, 6), 2),
    "interpolate": lambda f, i: F.interpolate(f(1, 1, 4, 4), scale_factor=2, mode="bilinear"),
    "cross_entropy": lambda f, i: F.cross_entropy(f(3, 5), i(5, 3)),
    "nll_loss": lambda f, i: F.nll_loss(f(3, 5).log_softmax(-1), i(5, 3), reduction="none"),
    "mse_loss": lambda f, i: F.mse_loss(f(3), f(3)),
    "kl_div": lambda f, i: F.kl_div(f(3).log_softmax(0), f(3).softmax(0), reduction="sum"),
    "binary_cross_entropy": lambda f, i: F.binary_cross_entropy_with_logits(f(4), i(2, 4).float()),
    "attention": lambda f, i: F.scaled_dot_product_attention(f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 4)),
    "causal attention": lambda f, i: F.scaled_dot_product_attention(
        f(1, 2, 3, 4), f(1, 2, 3, 4), f(1, 2, 3, 4), is_causal=True, scale=0.3
    ),
    "attention with a mask": lambda f, i: F.scaled_dot_product_attention(
        f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 4), attn_mask=i(2, 3, 5).bool() | i(2, 3, 1).bool()
    ),
    "attention with a bias": lambda f, i: F.scaled_dot_product_attention(
        f(1, 2, 3, 4), f(1, 2, 5, 4), f(1, 2, 5, 4), attn_mask=f(1, 1, 3, 5)
    ),
    "grouped attention": lambda f, i: F.scaled_dot_product_attention(
        f(1, 4, 3, 4), f(1, 2, 3, 4), f(1, 2, 3, 4), is_causal=True, enable_gqa=True
    ),
    "attention of bfloat16": lambda f, i: F.scaled_dot_product_attention(
        *(f(1, 2, 3, 4, dtype=torch.bfloat16) for _ in range(3)), is_causal=True
    ),
}


def programs() -> list[Any]:
    made = [pytest.param(program, id=f"factory {name}") for name, program in FACTORIES.items()]
    for table in (INDEXING, ARITHMETIC, SHAPES, LAYERS):
        for name, body in table.items():
            made.append(pytest.param(lambda to, body=body: body(*maker(to)), id=name))
    return made


def on_host(value: Any, device: str) -> Any:
    """The values of what a program gives, all of it on `device`."""
    if isinstance(value, torch.Tensor):
        assert value.device.type == device
        return value.detach().cpu()
    return [on_host(item, device) for item in value]


@pytest.mark.parametrize("program", programs())
def test_an_operator_gives_what_the_cpu_gives(dev: Any, program: Callable[[str], Any]) -> None:
    expected = on_host(program("cpu"), "cpu")
    torch.testing.assert_close(on_host(program("sim"), "sim"), expected)
    with dev.schedule(dev.Adversary(seed=1)):
        torch.testing.assert_close(on_host(program("sim"), "sim"), expected)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 4}, {"include_last_offset": True}])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_an_embedding_bag_gives_what_the_cpu_gives(
    dev: Any, mode: str, options: dict[str, Any], dtype: torch.dtype, grad: bool
) -> None:
    offsets = torch.tensor([0, 3, 6] if "include_last_offset" in options else [0, 3])
    table, rows = torch.arange(30.0).view(10, 3), torch.tensor([1, 2, 4, 5, 4, 3])

    def bags(to: str) -> torch.Tensor:
        weight = table.to(to, dtype).requires_grad_(grad)
        out = F.embedding_bag(rows.to(to), weight, offsets.to(to), mode=mode, **options)
        if grad:
            out.sum().backward()
            out = torch.cat([out.detach(), weight.grad])
        return out.cpu()

    assert torch.equal(bags("sim"), bags("cpu"))
