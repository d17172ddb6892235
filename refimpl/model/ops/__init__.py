"""The ops of the models: Triton kernels for tensors on CUDA, plain PyTorch elsewhere, one set of signatures.

A kernel and its plain version give the same values up to rounding; float32 kernels multiply in IEEE float32, never in
TF32. On `sim` an op is one operator made of the plain version, since a kernel is one piece of work. Kernels have no
gradient: inside `with ops.reference():` the plain version runs everywhere, for training and as the oracle of tests.

Every op queues its work on the current stream and returns at once; none of them blocks the host, none has a shape that
depends on a value, so all of them may be captured in a graph. Integer tensors may be int32 or int64 unless the text
says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from refimpl.model.ops import plain, whole

__all__ = [
    "add_rms_norm",
    "load_rows",
    "paged_attention",
    "qk_norm_rope",
    "qk_norm_rope_store",
    "reference",
    "rms_norm",
    "silu_and_mul",
    "store_kv",
]

_WITHOUT_GRADIENT = ("cuda", "sim")
_plain_everywhere: ContextVar[bool] = ContextVar("plain_everywhere", default=False)


@contextmanager
def reference() -> Iterator[None]:
    """Inside, every op is plain PyTorch on every device: differentiable, and the oracle of the kernels' tests.

    Order:
        Counts for ops called inside, by this thread or task.
    Example:
        >>> x = torch.ones(2, 4, requires_grad=True)
        >>> with reference():
        ...     rms_norm(x, torch.ones(4), 1e-6).sum().backward()
        >>> x.grad.shape
        torch.Size([2, 4])
    """
    before = _plain_everywhere.set(True)
    try:
        yield
    finally:
        _plain_everywhere.reset(before)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Divides by the root of the mean square, in float32, and scales by the weight.

    Args:
        x: [..., d].
        weight: [d], of the dtype of `x`.
        eps: Added to the mean square.
    Returns:
        [..., d], of the dtype of `x`.
    Source:
        Zhang and Sennrich, Root Mean Square Layer Normalization, 2019; rounding as transformers' Qwen3RMSNorm.
    """
    out: Tensor = _version(x, weight).rms_norm(x, weight, eps)
    return out


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Adds a block's output to the residual stream and normalises the sum, in one pass over both.

    Args:
        x: [..., d]; what the block before gave.
        residual: [..., d], of the dtype of `x`; neither is changed.
        weight: [d].
        eps: Added to the mean square.
    Returns:
        The normalised sum and the sum, each [..., d].
    """
    out: tuple[Tensor, Tensor] = _version(x, weight).add_rms_norm(x, residual, weight, eps)
    return out


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
    """Splits a fused projection, normalises each head of q and k, and rotates them by their position.

    Args:
        qkv: [..., (heads + 2 * kv_heads) * hd]; all heads of q, then of k, then of v.
        q_weight: [hd], the weight of q's norm.
        k_weight: [hd], the weight of k's norm.
        cos_sin: float32 [positions, hd]; per position hd/2 cosines, then hd/2 sines. Dimension i is rotated with
            dimension i + hd/2.
        positions: [...], below `cos_sin.shape[0]`.
        heads: Query heads.
        kv_heads: Key and value heads.
        eps: Of both norms.
    Returns:
        q [..., heads, hd] and k, v [..., kv_heads, hd]; v is a view of `qkv`.
    Source:
        Su et al., RoFormer, 2021; head norms as in Qwen3.
    """
    out: tuple[Tensor, Tensor, Tensor] = _version(qkv, q_weight, k_weight).qk_norm_rope(
        qkv, q_weight, k_weight, cos_sin, positions, heads, kv_heads, eps
    )
    return out


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
    """`qk_norm_rope`, with k and v written to the cache and not returned: one kernel where there would be two.

    Args:
        qkv, q_weight, k_weight, cos_sin, positions, heads, kv_heads, eps: As of `qk_norm_rope`; `qkv` is [T, …].
        k_cache: [num_slots, kv_heads, hd], written at `slots`.
        v_cache: [num_slots, kv_heads, hd], written at `slots`.
        slots: [T]; rows that name one slot twice (padding, slot 0) leave either.
    Returns:
        q [T, heads, hd].
    Raises:
        ValueError: Not one slot for each token, or a cache of other heads.
    """
    _a_slot_each("qk_norm_rope_store", qkv, slots)
    _as_wide("qk_norm_rope_store", kv_heads, k_cache, v_cache)
    out: Tensor = _version(qkv, q_weight, k_weight).qk_norm_rope_store(
        qkv, q_weight, k_weight, cos_sin, positions, heads, kv_heads, eps, k_cache, v_cache, slots
    )
    return out


def silu_and_mul(gate_up: Tensor) -> Tensor:
    """The gate of a SwiGLU block: `silu(gate) * up`.

    Args:
        gate_up: [..., 2 * f]; the gate's half first.
    Returns:
        [..., f], of the dtype of the input.
    Source:
        Shazeer, GLU Variants Improve Transformer, 2020.
    """
    out: Tensor = _version(gate_up).silu_and_mul(gate_up)
    return out


def store_kv(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """Writes one key and one value per token into the cache.

    Args:
        k: [T, kv_heads, hd].
        v: [T, kv_heads, hd]; may be a view with a stride of its own between tokens.
        k_cache: [num_slots, kv_heads, hd], written at `slots`.
        v_cache: [num_slots, kv_heads, hd], written at `slots`.
        slots: [T]; rows that name one slot twice (padding, slot 0) leave either.
    Raises:
        ValueError: Not one slot for each token, or a cache of other heads.
    """
    _a_slot_each("store_kv", k, slots)
    _as_wide("store_kv", k.shape[-2], k_cache, v_cache)
    _version(k, v).store_kv(k, v, k_cache, v_cache, slots)


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
    """Attention of ragged query rows over a cache whose pages hold one token each.

    Query j of request b stands at kv index `kv_lens[b] - rows_b + j`, where `rows_b = q_starts[b + 1] - q_starts[b]`:
    the rows are the last entries of the request. A row that sees no entry (an empty request, padding) gives zeros.

    Args:
        q: [T, heads, hd]; the rows of request b are `q_starts[b]` up to `q_starts[b + 1]`.
        k_cache: [num_slots, kv_heads, hd]; `heads` is a multiple of `kv_heads`.
        v_cache: [num_slots, kv_heads, hd].
        page_table: int32 [bs, width]; the slot of each kv index. What lies past `kv_lens[b]` is not looked at.
        kv_lens: [bs]; entries of each request, the rows' own included. Read on the device.
        q_starts: [bs + 1].
        max_q_len: At least the rows of every request; known on the host.
        causal: A row sees the entries up to its own; else it sees all of its request.
        tail_mask: bool [bs, max_q_len, tail] or None. Which of the request's last `tail` entries each row sees; it
            sees all the ones before. It stands in place of `causal`.
        window: A row at kv index i sees entry j only if j > i - window; None for no limit.
        scale: Of the scores; None for 1 / sqrt(hd).
        settled: Another op of this package stands between what wrote `page_table`, `kv_lens` and `q_starts` and this
            call, on the same stream: the kernel may read them while that one ends.
    Returns:
        [T, heads, hd], of the dtype of `q`.
    Raises:
        ValueError: The tensors speak of different numbers of requests.
    Source:
        Kwon et al., PagedAttention, 2023; split over entries as Flash-Decoding, Dao et al., 2023.
    """
    bs = page_table.shape[0]
    if (kv_lens.shape[0], q_starts.shape[0]) != (bs, bs + 1):
        raise ValueError(
            f"paged_attention: page_table has {bs} rows, kv_lens {kv_lens.shape[0]} and q_starts {q_starts.shape[0]}: "
            "give n, n and n + 1"
        )
    out: Tensor = _version(q).paged_attention(
        q, k_cache, v_cache, page_table, kv_lens, q_starts, max_q_len, causal, tail_mask, window, scale, settled
    )
    return out


def load_rows(
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    out_indices: Tensor,
    out_seq_lens: Tensor,
    out_page_table: Tensor,
    bucket: int,
) -> None:
    """Copies what a captured graph reads of its batch into the graph's own buffers, and pads it to the bucket.

    After it has run nothing of the graph reads `req_to_token` or `seq_lens`: the schedule stream may write them.

    Args:
        req_to_token: int32 [rows, max_context]; row 0 is the padding row.
        req_pool_indices: [bs], the row of each request.
        seq_lens: [bs].
        out_indices: [at least bucket]; rows bs..bucket become 0.
        out_seq_lens: [at least bucket]; rows bs..bucket become 0.
        out_page_table: int32 [at least bucket, width], width at most max_context; row i becomes the start of row
            `out_indices[i]`.
        bucket: Requests the graph was captured for; at least bs.
    Raises:
        ValueError: The bucket is smaller than the batch, or a buffer smaller than the bucket; or not one length for
            each row.
    """
    bs = req_pool_indices.shape[0]
    room = min(out_indices.shape[0], out_seq_lens.shape[0], out_page_table.shape[0])
    if seq_lens.shape[0] != bs:
        raise ValueError(f"load_rows: {bs} rows and {seq_lens.shape[0]} lengths: give one for each request")
    if not bs <= bucket <= room:
        raise ValueError(f"load_rows: {bs} requests for bucket {bucket} with buffers of {room}: choose a larger bucket")
    _version(req_to_token).load_rows(
        req_to_token, req_pool_indices, seq_lens, out_indices, out_seq_lens, out_page_table, bucket
    )


def _as_wide(name: str, kv_heads: int, *caches: Tensor) -> None:
    """A kernel trusts its sizes: with other heads it would write into the slots beside."""
    for entries in caches:
        if entries.shape[-2] != kv_heads:
            raise ValueError(
                f"{name}: keys of {kv_heads} heads into a cache of {entries.shape[-2]}: give the model's own cache"
            )


def _a_slot_each(op: str, tokens: Tensor, slots: Tensor) -> None:
    """A kernel would read slots past the end, and write wherever they say."""
    if slots.shape != tokens.shape[:1]:
        raise ValueError(f"{op}: {tokens.shape[0]} tokens, and slots of shape {tuple(slots.shape)}: give one for each")


def _version(*tensors: Tensor) -> Any:
    """The module whose ops take these tensors; a gradient that a kernel would lose is an error."""
    device = tensors[0].device.type
    # Under torch.compile the plain version is what the compiler fuses; it cannot trace the context variable either.
    if device not in _WITHOUT_GRADIENT or torch.compiler.is_compiling() or _plain_everywhere.get():
        return plain
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        if device == "sim":
            return plain
        raise RuntimeError(
            "refimpl.model.ops: the kernels have no gradient: train inside `with ops.reference():`, or serve inside "
            "`with torch.inference_mode():`"
        )
    return _kernels() if device == "cuda" else whole


@cache
def _kernels() -> ModuleType:
    """Imported when the first tensor on CUDA comes: elsewhere there may be no compiler for them."""
    from refimpl.model.ops import triton_all

    return triton_all
