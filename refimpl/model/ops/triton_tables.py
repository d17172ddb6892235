"""What moves rows without arithmetic: keys and values to the cache, batches to a graph, slots to their requests."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from refimpl.model.ops.triton_launch import Kernel, power_of_two

ENTRIES_A_PROGRAM = 1024


@triton.jit
def _store_kv(
    k: tl.tensor,
    v: tl.tensor,
    k_cache: tl.tensor,
    v_cache: tl.tensor,
    slots: tl.tensor,
    k_stride: tl.tensor,
    v_stride: tl.tensor,
    k_cache_stride: tl.tensor,
    v_cache_stride: tl.tensor,
    width: tl.tensor,
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
) -> None:
    token = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < width
    if DEPENDENT:
        gdc_wait()
    slot = tl.load(slots + token).to(tl.int64)
    keys = tl.load(k + token * k_stride + at, mask=inside)
    values = tl.load(v + token * v_stride + at, mask=inside)
    if DEPENDENT:
        gdc_launch_dependents()
    tl.store(k_cache + slot * k_cache_stride + at, keys, mask=inside)
    tl.store(v_cache + slot * v_cache_stride + at, values, mask=inside)


@triton.jit(do_not_specialize=["bs"])
def _load_rows(
    req_to_token: tl.tensor,
    req_pool_indices: tl.tensor,
    seq_lens: tl.tensor,
    out_indices: tl.tensor,
    out_seq_lens: tl.tensor,
    out_page_table: tl.tensor,
    width: tl.tensor,
    from_stride: tl.tensor,
    to_stride: tl.tensor,
    bs: tl.tensor,
    BLOCK: tl.constexpr,
    DEPENDENT: tl.constexpr,
) -> None:
    i = tl.program_id(0)
    if DEPENDENT:
        gdc_wait()
    # A row past the batch reads row 0, the padding row, and has no length.
    row = tl.load(req_pool_indices + i, mask=i < bs, other=0).to(tl.int64)
    if tl.program_id(1) == 0:
        tl.store(out_indices + i, row)
        tl.store(out_seq_lens + i, tl.load(seq_lens + i, mask=i < bs, other=0))
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    entries = tl.load(req_to_token + row * from_stride + at, mask=inside)
    if DEPENDENT:
        gdc_launch_dependents()
    tl.store(out_page_table + i.to(tl.int64) * to_stride + at, entries, mask=inside)


STORE_KV, LOAD_ROWS = Kernel(_store_kv), Kernel(_load_rows)


def store_kv(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """`refimpl.model.ops.store_kv` on CUDA."""
    k, v = k.flatten(1), v.flatten(1)
    tokens, width = k.shape
    if tokens:
        STORE_KV.launch(
            (tokens, 1, 1),
            (k, v, k_cache, v_cache, slots.contiguous()),
            (k.stride(0), v.stride(0), k_cache.stride(0), v_cache.stride(0), width),
            constants=(power_of_two(width),),
        )


def load_rows(
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    out_indices: Tensor,
    out_seq_lens: Tensor,
    out_page_table: Tensor,
    bucket: int,
) -> None:
    """`refimpl.model.ops.load_rows` on CUDA."""
    width = out_page_table.shape[1]
    block = min(ENTRIES_A_PROGRAM, power_of_two(width))
    LOAD_ROWS.launch(
        (bucket, -(-width // block), 1),
        (
            req_to_token,
            req_pool_indices.contiguous(),
            seq_lens.contiguous(),
            out_indices,
            out_seq_lens,
            out_page_table,
        ),
        (width, req_to_token.stride(0), out_page_table.stride(0)),
        free=(req_pool_indices.shape[0],),
        constants=(block,),
    )
