"""RMSNorm, with and without the residual's sum, and the gate of the MLP, as Triton kernels."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from refimpl.model.ops.triton_launch import Kernel, power_of_two, rows_of

GATE_BLOCK = 1024
ELEMENTS_A_WARP = 512


@triton.jit
def _normed(x: tl.tensor, weight: tl.tensor, d: tl.tensor, eps: tl.tensor) -> tl.tensor:
    wide = x.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, 0) / d + eps)
    return weight.to(tl.float32) * (wide * scale).to(x.dtype).to(tl.float32)


@triton.jit
def _rms_norm(
    x: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    x_stride: tl.tensor,
    d: tl.tensor,
    eps: tl.tensor,
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < d
    w = tl.load(weight + at, mask=inside, other=0)
    if DEPENDENT:
        gdc_wait()
    values = tl.load(x + row * x_stride + at, mask=inside, other=0)
    if DEPENDENT:
        gdc_launch_dependents()
    tl.store(out + row * d + at, _normed(values, w, d, eps), mask=inside)


@triton.jit
def _add_rms_norm(
    x: tl.tensor,
    residual: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    total: tl.tensor,
    x_stride: tl.tensor,
    residual_stride: tl.tensor,
    d: tl.tensor,
    eps: tl.tensor,
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < d
    w = tl.load(weight + at, mask=inside, other=0)
    if DEPENDENT:
        gdc_wait()
    added = tl.load(x + row * x_stride + at, mask=inside, other=0)
    before = tl.load(residual + row * residual_stride + at, mask=inside, other=0)
    if DEPENDENT:
        gdc_launch_dependents()
    after = (added.to(tl.float32) + before.to(tl.float32)).to(added.dtype)
    tl.store(total + row * d + at, after, mask=inside)
    tl.store(out + row * d + at, _normed(after, w, d, eps), mask=inside)


@triton.jit
def _silu_and_mul(
    gate_up: tl.tensor,
    out: tl.tensor,
    stride: tl.tensor,
    f: tl.tensor,
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < f
    if DEPENDENT:
        gdc_wait()
    gate = tl.load(gate_up + row * stride + at, mask=inside, other=0)
    up = tl.load(gate_up + row * stride + f + at, mask=inside, other=0)
    if DEPENDENT:
        gdc_launch_dependents()
    wide = gate.to(tl.float32)
    opened = (wide * tl.sigmoid(wide)).to(gate.dtype)
    tl.store(out + row * f + at, opened.to(tl.float32) * up.to(tl.float32), mask=inside)


RMS_NORM, ADD_RMS_NORM, SILU_AND_MUL = Kernel(_rms_norm), Kernel(_add_rms_norm), Kernel(_silu_and_mul)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`refimpl.model.ops.rms_norm` on CUDA."""
    rows = rows_of(x)
    count, d = rows.shape
    out = torch.empty((count, d), dtype=x.dtype, device=x.device)
    block = power_of_two(d)
    if count:
        RMS_NORM.launch(
            (count, 1, 1), (rows, weight, out), (rows.stride(0), d, float(eps)), constants=(block,), warps=_warps(block)
        )
    return out.view(x.shape)


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """`refimpl.model.ops.add_rms_norm` on CUDA."""
    rows, before = rows_of(x), rows_of(residual)
    count, d = rows.shape
    out, total = torch.empty((2, count, d), dtype=x.dtype, device=x.device)
    block = power_of_two(d)
    if count:
        ADD_RMS_NORM.launch(
            (count, 1, 1),
            (rows, before, weight, out, total),
            (rows.stride(0), before.stride(0), d, float(eps)),
            constants=(block,),
            warps=_warps(block),
        )
    return out.view(x.shape), total.view(x.shape)


def silu_and_mul(gate_up: Tensor) -> Tensor:
    """`refimpl.model.ops.silu_and_mul` on CUDA."""
    rows = rows_of(gate_up)
    count, f = rows.shape[0], rows.shape[1] // 2
    out = torch.empty((count, f), dtype=gate_up.dtype, device=gate_up.device)
    block = min(GATE_BLOCK, power_of_two(f))
    if count:
        SILU_AND_MUL.launch(
            (count, -(-f // block), 1), (rows, out), (rows.stride(0), f), constants=(block,), warps=_warps(block)
        )
    return out.view(*gate_up.shape[:-1], f)


def _warps(block: int) -> int:
    return min(8, max(1, block // ELEMENTS_A_WARP))
