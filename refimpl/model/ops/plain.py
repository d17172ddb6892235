"""Every op in plain PyTorch: what `sim` and the CPU run, what training differentiates, what tests compare kernels with.

No shape depends on a value and nothing blocks the host, so each of them can be captured in a graph. Arguments, shapes
and results are those of the names in `refimpl.model.ops`.
"""

from __future__ import annotations

import torch
from torch import Tensor

NEVER = float("-inf")


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As transformers' Qwen3RMSNorm: in float32, cast back, then scaled by the weight."""
    wide = _wide(x)
    normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return weight * normed.to(x.dtype)


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The sum is rounded to the dtype of `x` before it is normalised, as it is in a model that adds first."""
    total = x + residual
    return rms_norm(total, weight, eps), total


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates the two halves of every head of x [..., heads, hd] by cos, sin [..., 1, hd / 2]."""
    first, second = _wide(x).chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


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
    """Normalises each head of q and k, then rotates it in float32 at least; v is a view of `qkv`."""
    head_dim = qkv.shape[-1] // (heads + 2 * kv_heads)
    q, k, v = qkv.unflatten(-1, (-1, head_dim)).split((heads, kv_heads, kv_heads), dim=-2)
    cos, sin = cos_sin[positions].unsqueeze(-2).chunk(2, dim=-1)
    return rotate(rms_norm(q, q_weight, eps), cos, sin), rotate(rms_norm(k, k_weight, eps), cos, sin), v


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
    """The one op, then the other."""
    q, k, v = qk_norm_rope(qkv, q_weight, k_weight, cos_sin, positions, heads, kv_heads, eps)
    store_kv(k, v, k_cache, v_cache, slots)
    return q


def silu_and_mul(gate_up: Tensor) -> Tensor:
    """`silu(gate) * up`, each rounded to the dtype of the input."""
    gate, up = gate_up.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def store_kv(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """Which row stays where two rows name one slot (padding, slot 0) is not said."""
    k_cache.index_put_((slots,), k.to(k_cache.dtype))
    v_cache.index_put_((slots,), v.to(v_cache.dtype))


def paged_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    page_table: Tensor,
    kv_lens: Tensor,
    q_starts: Tensor,
    max_q_len: int,
    causal: bool = True,
    tail_mask: Tensor | None = None,
    window: int | None = None,
    scale: float | None = None,
    settled: bool = False,
) -> Tensor:
    """Gathers the entries of every request and attends densely, with the softmax in float32."""
    width, kv_heads, head_dim = page_table.shape[1], *k_cache.shape[1:]
    written = torch.arange(width, device=q.device) < kv_lens[:, None]
    # What lies past a request's entries may name any slot, and any slot may hold NaN: neither reaches the sums.
    slots = torch.where(written, page_table, 0).long()
    k = _wide(k_cache[slots]).permute(0, 2, 3, 1)  # [bs, kv_heads, hd, width]
    v = _wide(v_cache[slots]).masked_fill(~written[:, :, None, None], 0).transpose(1, 2)
    rows = _rows_of_requests(q, q_starts, max_q_len)  # [bs, max_q_len, heads, hd]
    grouped = _wide(rows).unflatten(2, (kv_heads, -1)).permute(0, 2, 3, 1, 4)  # [bs, kv_heads, group, rows, hd]
    scores = grouped.flatten(2, 3) @ k * (head_dim**-0.5 if scale is None else scale)
    seen = visible(kv_lens, q_starts, max_q_len, width, causal, tail_mask, window)  # [bs, rows, width]
    scores = scores.unflatten(2, (-1, max_q_len)).masked_fill(~seen[:, None, None], NEVER)
    weights = scores.softmax(-1).masked_fill(~seen[:, None, None], 0)  # a row that sees nothing gives zeros, not NaN
    out = (weights.flatten(2, 3) @ v).unflatten(2, (-1, max_q_len)).permute(0, 3, 1, 2, 4)
    return _rows_of_tokens(out.flatten(2, 3), q_starts, q.shape[0]).to(q.dtype)


def visible(
    kv_lens: Tensor,
    q_starts: Tensor,
    max_q_len: int,
    width: int,
    causal: bool = True,
    tail_mask: Tensor | None = None,
    window: int | None = None,
) -> Tensor:
    """Which entry each query row sees.

    Args:
        kv_lens, q_starts, max_q_len, causal, tail_mask, window: As of `refimpl.model.ops.paged_attention`.
        width: Entries a request can have; those past its `kv_lens` are not seen.
    Returns:
        bool [bs, max_q_len, width].
    """
    entry = torch.arange(width, device=kv_lens.device)
    lens = kv_lens[:, None, None]
    first_row = (kv_lens - (q_starts[1:] - q_starts[:-1]))[:, None]
    own = (first_row + torch.arange(max_q_len, device=kv_lens.device))[:, :, None]  # kv index of each query
    seen = (entry < lens).expand(-1, max_q_len, -1)
    if tail_mask is not None:
        tail = tail_mask.shape[-1]
        at = entry - (lens - tail)  # [bs, 1, width]
        inside = tail_mask.gather(2, at.clamp(0, tail - 1).expand(-1, max_q_len, -1))
        seen = seen & (inside | (at < 0))
    elif causal:
        seen = seen & (entry <= own)
    if window is not None:
        seen = seen & (entry > own - window)
    return seen


def load_rows(
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    out_indices: Tensor,
    out_seq_lens: Tensor,
    out_page_table: Tensor,
    bucket: int,
) -> None:
    """Five copies where the kernel makes one pass."""
    bs, width = req_pool_indices.shape[0], out_page_table.shape[1]
    out_indices[:bs].copy_(req_pool_indices)
    out_seq_lens[:bs].copy_(seq_lens)
    if bs < bucket:
        out_indices[bs:bucket].zero_()
        out_seq_lens[bs:bucket].zero_()
    out_page_table[:bucket].copy_(req_to_token[:, :width].index_select(0, out_indices[:bucket]))


def _wide(x: Tensor) -> Tensor:
    """In float32 at least; float64 stays."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _rows_of_requests(q: Tensor, q_starts: Tensor, max_q_len: int) -> Tensor:
    """[T, heads, hd] to [bs, max_q_len, heads, hd]; rows that a request does not have repeat some token's."""
    bs, tokens = q_starts.shape[0] - 1, q.shape[0]
    if tokens == bs * max_q_len:  # then every request has max_q_len rows
        return q.view(bs, max_q_len, *q.shape[1:])
    at = q_starts[:-1, None] + torch.arange(max_q_len, device=q.device)
    return q[at.clamp(max=tokens - 1)]


def _rows_of_tokens(out: Tensor, q_starts: Tensor, tokens: int) -> Tensor:
    """[bs, max_q_len, heads, hd] back to [T, heads, hd]; tokens past the last request are zeros."""
    bs, max_q_len = out.shape[:2]
    if tokens == bs * max_q_len:
        return out.flatten(0, 1)
    at = torch.arange(tokens, device=out.device)
    request = (at[:, None] >= q_starts[1:]).sum(1)
    row = at - q_starts[request.clamp(max=bs - 1)]
    found = out[request.clamp(max=bs - 1), row.clamp(max=max_q_len - 1)]
    return found.masked_fill((request >= bs)[:, None, None], 0)
