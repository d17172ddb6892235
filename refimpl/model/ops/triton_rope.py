"""Head norms and RoPE of q and k in one pass over the fused projection, with or without the store to the cache."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from refimpl.model.ops.triton_launch import Kernel, power_of_two, rows_of

HEADS_A_PROGRAM = 8


@triton.jit
def _scaled(x: tl.tensor, scale: tl.tensor, weight: tl.tensor) -> tl.tensor:
    """Normed and weighted, with the two roundings that `rms_norm` makes; float32."""
    normed = (x.to(tl.float32) * scale).to(x.dtype).to(tl.float32)
    return (normed * weight.to(tl.float32)).to(x.dtype).to(tl.float32)


@triton.jit
def _qk_norm_rope(
    qkv: tl.tensor,
    q_weight: tl.tensor,
    k_weight: tl.tensor,
    cos_sin: tl.tensor,
    positions: tl.tensor,
    slots: tl.tensor,
    q_out: tl.tensor,
    k_out: tl.tensor,
    v_out: tl.tensor,
    qkv_stride: tl.tensor,
    k_stride: tl.tensor,
    v_stride: tl.tensor,
    eps: tl.tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_HALF: tl.constexpr,
    BLOCK_HEADS: tl.constexpr,
    STORE: tl.constexpr,
    DEPENDENT: tl.constexpr,
) -> None:
    """One token, a few heads: both halves of each head are loaded apart, so that the rotation moves nothing."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)[:, None]
    at = tl.arange(0, BLOCK_HALF)[None, :]
    half: tl.constexpr = HEAD_DIM // 2
    is_q = head < HEADS
    is_k = (head >= HEADS) & (head < HEADS + KV_HEADS)
    whole = at < half
    w1 = tl.load(q_weight + at, mask=is_q & whole, other=0) + tl.load(k_weight + at, mask=is_k & whole, other=0)
    w2 = tl.load(q_weight + half + at, mask=is_q & whole, other=0) + tl.load(
        k_weight + half + at, mask=is_k & whole, other=0
    )
    if DEPENDENT:
        gdc_wait()
    last = HEADS + 2 * KV_HEADS if STORE else HEADS + KV_HEADS
    source = qkv + token * qkv_stride + head * HEAD_DIM + at
    inside = (head < last) & whole
    x1 = tl.load(source, mask=inside, other=0)
    x2 = tl.load(source + half, mask=inside, other=0)
    position = tl.load(positions + token).to(tl.int64)
    cos = tl.load(cos_sin + position * HEAD_DIM + at, mask=whole, other=0)
    sin = tl.load(cos_sin + position * HEAD_DIM + half + at, mask=whole, other=0)
    if DEPENDENT:
        gdc_launch_dependents()
    f1, f2 = x1.to(tl.float32), x2.to(tl.float32)
    scale = tl.rsqrt((tl.sum(f1 * f1, 1) + tl.sum(f2 * f2, 1)) / HEAD_DIM + eps)[:, None]
    n1, n2 = _scaled(x1, scale, w1), _scaled(x2, scale, w2)
    r1, r2 = n1 * cos - n2 * sin, n2 * cos + n1 * sin
    q_at = q_out + token * HEADS * HEAD_DIM + head * HEAD_DIM + at
    tl.store(q_at, r1, mask=is_q & whole)
    tl.store(q_at + half, r2, mask=is_q & whole)
    row = tl.load(slots + token).to(tl.int64) if STORE else token
    k_at = k_out + row * k_stride + (head - HEADS) * HEAD_DIM + at
    tl.store(k_at, r1, mask=is_k & whole)
    tl.store(k_at + half, r2, mask=is_k & whole)
    if STORE:
        is_v = inside & (head >= HEADS + KV_HEADS)
        v_at = v_out + row * v_stride + (head - HEADS - KV_HEADS) * HEAD_DIM + at
        tl.store(v_at, x1, mask=is_v)
        tl.store(v_at + half, x2, mask=is_v)


QK_NORM_ROPE = Kernel(_qk_norm_rope)


def qk_norm_rope(
    qkv: Tensor,
    q_weight: Tensor,
    k_weight: Tensor,
    cos_sin: Tensor,
    positions: Tensor,
    heads: int,
    kv_heads: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`refimpl.model.ops.qk_norm_rope` on CUDA."""
    head_dim = qkv.shape[-1] // (heads + 2 * kv_heads)
    lead = qkv.shape[:-1]
    k = torch.empty((*lead, kv_heads, head_dim), dtype=qkv.dtype, device=qkv.device)
    v = qkv.unflatten(-1, (-1, head_dim))[..., heads + kv_heads :, :]
    q = _launch(qkv, q_weight, k_weight, cos_sin, positions, heads, kv_heads, eps, k.view(-1, kv_heads, head_dim))
    return q, k, v


def qk_norm_rope_store(
    qkv: Tensor,
    q_weight: Tensor,
    k_weight: Tensor,
    cos_sin: Tensor,
    positions: Tensor,
    heads: int,
    kv_heads: int,
    eps: float,
    k_cache: Tensor,
    v_cache: Tensor,
    slots: Tensor,
) -> Tensor:
    """`refimpl.model.ops.qk_norm_rope_store` on CUDA."""
    return _launch(
        qkv, q_weight, k_weight, cos_sin, positions, heads, kv_heads, eps, k_cache, v_cache, slots.contiguous()
    )


def _launch(
    qkv: Tensor,
    q_weight: Tensor,
    k_weight: Tensor,
    cos_sin: Tensor,
    positions: Tensor,
    heads: int,
    kv_heads: int,
    eps: float,
    k_out: Tensor,
    v_out: Tensor | None = None,
    slots: Tensor | None = None,
) -> Tensor:
    head_dim = qkv.shape[-1] // (heads + 2 * kv_heads)
    lead = qkv.shape[:-1]
    rows = rows_of(qkv)
    positions = positions.expand(lead).reshape(-1).contiguous()
    q = torch.empty((*lead, heads, head_dim), dtype=qkv.dtype, device=qkv.device)
    store = slots is not None
    covered = heads + (2 if store else 1) * kv_heads
    if rows.shape[0]:
        QK_NORM_ROPE.launch(
            (rows.shape[0], -(-covered // HEADS_A_PROGRAM), 1),
            (
                rows,
                q_weight,
                k_weight,
                cos_sin,
                positions,
                slots if slots is not None else positions,
                q,
                k_out,
                v_out if v_out is not None else k_out,
            ),
            (rows.stride(0), k_out.stride(0), v_out.stride(0) if v_out is not None else 0, float(eps)),
            constants=(heads, kv_heads, head_dim, power_of_two(head_dim // 2), HEADS_A_PROGRAM, store),
            warps=2,
        )
    return q
