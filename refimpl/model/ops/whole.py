"""Every op as one operator of PyTorch's, made of the plain version: what `sim` queues where a GPU has one kernel.

In plain PyTorch an op is a dozen operators, and on `sim` each of them is queued, scheduled and drawn by itself. As one
operator it is one piece of work, with the reads and writes that its schema names, as the kernel is. It has no gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from refimpl.model.ops import plain

ENTRIES = 64
"""Entries are gathered in steps of so many, so that sums are as they would be with more."""
_LIBRARY = torch.library.Library("refimpl", "DEF")
_NORM = "Tensor weight, float eps"
_HEADS = (
    "Tensor qkv, Tensor q_weight, Tensor k_weight, Tensor cos_sin, Tensor positions, int heads, int kv_heads, float eps"
)
_CACHE = "Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor slots"


Cells = dict[str, tuple[str, ...]]
_STORED: Cells = {"k_cache": ("slots",), "v_cache": ("slots",)}
_ATTENDED: Cells = {"k_cache": ("page_table", "kv_lens"), "v_cache": ("page_table", "kv_lens")}


def _operator(schema: str, run: Callable[..., Any], shaped: Callable[..., Any], cells: Cells | None = None) -> Any:
    """Defines one.

    Args:
        schema: its name and arguments.
        run: the plain version.
        shaped: what comes out, from the arguments' shapes alone.
        cells: for a recording, by the name of a tensor that it touches in part: the argument that names the cells of
            the first dimension, or rows of them and how many of each row count.
    """
    name = schema.partition("(")[0]
    _LIBRARY.define(schema)
    _LIBRARY.impl(name, run, "CPU")
    torch.library.register_fake(f"refimpl::{name}", shaped, lib=_LIBRARY)
    operator = getattr(torch.ops.refimpl, name).default
    if cells is not None:
        operator.cells = cells
    return operator


def _heads_of(qkv: Tensor, q_weight: Tensor, first: int) -> Tensor:
    return qkv.new_empty(*qkv.shape[:-1], first, q_weight.shape[0])


def _rotated(*call: Any) -> tuple[Tensor, Tensor]:
    q, k, _ = plain.qk_norm_rope(*call)
    return q, k


def _attended(q: Tensor, k_cache: Tensor, v_cache: Tensor, page_table: Tensor, kv_lens: Tensor, *more: Any) -> Tensor:
    """As a kernel does, it reads the lengths when it runs, and gathers no more than the longest request has."""
    longest = -(-int(kv_lens.max()) // ENTRIES) * ENTRIES
    return plain.paged_attention(q, k_cache, v_cache, page_table[:, : max(longest, 1)], kv_lens, *more)


rms_norm = _operator(f"rms_norm(Tensor x, {_NORM}) -> Tensor", plain.rms_norm, lambda x, *_: torch.empty_like(x))
add_rms_norm = _operator(
    f"add_rms_norm(Tensor x, Tensor residual, {_NORM}) -> (Tensor, Tensor)",
    plain.add_rms_norm,
    lambda x, *_: (torch.empty_like(x), torch.empty_like(x)),
)
_qk_norm_rope = _operator(
    f"qk_norm_rope({_HEADS}) -> (Tensor, Tensor)",
    _rotated,
    lambda qkv, w, *more: (_heads_of(qkv, w, more[3]), _heads_of(qkv, w, more[4])),
)
qk_norm_rope_store = _operator(
    f"qk_norm_rope_store({_HEADS}, {_CACHE}) -> Tensor",
    plain.qk_norm_rope_store,
    lambda qkv, w, *more: _heads_of(qkv, w, more[3]),
    _STORED,
)
silu_and_mul = _operator(
    "silu_and_mul(Tensor gate_up) -> Tensor",
    plain.silu_and_mul,
    lambda gate_up: gate_up.new_empty(*gate_up.shape[:-1], gate_up.shape[-1] // 2),
)
store_kv = _operator(f"store_kv(Tensor k, Tensor v, {_CACHE}) -> ()", plain.store_kv, lambda *_: None, _STORED)
paged_attention = _operator(
    "paged_attention(Tensor q, Tensor k_cache, Tensor v_cache, Tensor page_table, Tensor kv_lens, Tensor q_starts, "
    "int max_q_len, bool causal, Tensor? tail_mask, int? window, float? scale, bool settled) -> Tensor",
    _attended,
    lambda q, *_: torch.empty_like(q),
    _ATTENDED,
)
# It reads a few rows of a table that other streams write meanwhile. Which rows, a recording learns from the index
# operators that it is made of.
load_rows = plain.load_rows


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
    """An operator returns no view of its argument, so v is cut out here."""
    q, k = _qk_norm_rope(qkv, q_weight, k_weight, cos_sin, positions, heads, kv_heads, eps)
    return q, k, qkv.unflatten(-1, (-1, q_weight.shape[0]))[..., heads + kv_heads :, :]
