"""Paged attention: the rows of a request against entries that lie anywhere, for decode, verify and prefill alike.

A program takes a block of rows, all the query heads that share one key head, and a part of the request's entries. The
heads of the group are rows of one matrix: with them even a decode of one row fills a tile better, and every key is read
once for its whole group. Where requests and key heads are too few to fill the device, the entries are split among
several programs, and a second kernel joins the parts. How many there are follows from shapes alone, so a captured graph
keeps its grid while lengths grow.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from refimpl.model.ops.attention_plan import plan_of
from refimpl.model.ops.triton_launch import Kernel, multiprocessors

LOG2_E = 1.4426950408889634
JOIN_WARPS = 2


@triton.jit
def _seen(
    n: tl.tensor,
    row: tl.tensor,
    own: tl.tensor,
    valid: tl.tensor,
    kv_len: tl.tensor,
    tail_mask: tl.tensor,
    tail: tl.tensor,
    window: tl.tensor,
    CAUSAL: tl.constexpr,
    TAIL: tl.constexpr,
    WINDOW: tl.constexpr,
) -> tl.tensor:
    """Which of the entries n [N] each row sees: bool [M, N]. `own` is the rows' kv index, `tail_mask` the request's."""
    seen = valid[None, :] & (row[:, None] >= 0)
    if TAIL:
        at = n - (kv_len - tail)
        inside = (at >= 0) & valid
        asked = tail_mask + row[:, None] * tail + at[None, :]
        seen = seen & (tl.load(asked, mask=inside[None, :] & (row[:, None] >= 0), other=1) != 0)
    elif CAUSAL:
        seen = seen & (n[None, :] <= own[:, None])
    if WINDOW:
        seen = seen & (n[None, :] > own[:, None] - window)
    return seen


@triton.jit(do_not_specialize=["max_q_len", "tail", "window", "splits"])
def _attend(
    q: tl.tensor,
    k_cache: tl.tensor,
    v_cache: tl.tensor,
    page_table: tl.tensor,
    kv_lens: tl.tensor,
    q_starts: tl.tensor,
    tail_mask: tl.tensor,
    out: tl.tensor,
    lse: tl.tensor,
    q_stride: tl.tensor,
    k_stride: tl.tensor,
    v_stride: tl.tensor,
    table_stride: tl.tensor,
    scale: tl.tensor,
    max_q_len: tl.tensor,
    tail: tl.tensor,
    window: tl.tensor,
    splits: tl.tensor,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SPLIT: tl.constexpr,
    CAUSAL: tl.constexpr,
    TAIL: tl.constexpr,
    WINDOW: tl.constexpr,
    SETTLED: tl.constexpr,
    DEPENDENT: tl.constexpr,
) -> None:
    """One block of rows, one key head, one part of one request's entries."""
    if DEPENDENT and not SETTLED:
        gdc_wait()
    b = tl.program_id(2)
    kv_head = tl.program_id(1) % KV_HEADS
    split = tl.program_id(1) // KV_HEADS
    start = tl.program_id(0) * BLOCK_M
    q_start = tl.load(q_starts + b)
    q_len = tl.load(q_starts + b + 1) - q_start
    kv_len = tl.load(kv_lens + b)
    if start >= q_len * GROUP:
        if DEPENDENT and SETTLED:
            gdc_wait()  # a kernel that ended before the one before it would let the next one begin too early
        return
    first = kv_len - q_len  # kv index of row 0

    m = start + tl.arange(0, BLOCK_M)
    row = tl.where(m < q_len * GROUP, m // GROUP, -1)
    head = kv_head * GROUP + m % GROUP
    d = tl.arange(0, HEAD_DIM)
    own = first + row
    token = (q_start + tl.maximum(row, 0)).to(tl.int64)

    end = kv_len
    if CAUSAL and not TAIL:
        end = tl.minimum(end, first + tl.minimum((start + BLOCK_M - 1) // GROUP, q_len - 1) + 1)
    begin = 0
    if WINDOW:
        begin = tl.maximum(first + start // GROUP - window + 1, 0)
    part = tl.cdiv(tl.cdiv(tl.maximum(end - begin, 0), splits), BLOCK_N) * BLOCK_N
    low = begin + split * part
    high = tl.minimum(low + part, end)

    table = page_table + b.to(tl.int64) * table_stride
    lane = tl.arange(0, BLOCK_N)
    slot = tl.load(table + low + lane, mask=low + lane < high, other=0)
    if DEPENDENT and SETTLED:
        # Safe because: what is read above was written before the kernel before this one began. That one calls
        # gdc_wait first and gdc_launch_dependents later, so none of this one's blocks begins before its writers end.
        gdc_wait()
    held = (row >= 0)[:, None]
    queries = tl.load(q + token[:, None] * q_stride + head[:, None] * HEAD_DIM + d[None, :], mask=held, other=0)
    mask_of_request = tail_mask + b.to(tl.int64) * max_q_len * tail

    peak = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    sums = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    for at in range(low, high, BLOCK_N):
        n = at + lane
        valid = n < high
        # One block ahead, so that keys and values wait for no slot.
        ahead = n + BLOCK_N
        next_slot = tl.load(table + ahead, mask=ahead < high, other=0)
        entries = slot.to(tl.int64)[:, None]
        inside = valid[:, None]
        keys = tl.load(k_cache + entries * k_stride + kv_head * HEAD_DIM + d[None, :], mask=inside, other=0)
        values = tl.load(v_cache + entries * v_stride + kv_head * HEAD_DIM + d[None, :], mask=inside, other=0)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
        seen = _seen(n, row, own, valid, kv_len, mask_of_request, tail, window, CAUSAL, TAIL, WINDOW)
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(peak, tl.max(scores, 1))
        # A row that has seen nothing yet keeps -inf; subtracting it would give NaN.
        safe = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - safe[:, None])
        faded = tl.exp2(peak - safe)
        total = total * faded + tl.sum(weights, 1)
        sums = sums * faded[:, None]
        sums = tl.dot(weights.to(values.dtype), values, sums, input_precision="ieee")
        peak = higher
        slot = next_slot

    if DEPENDENT:
        gdc_launch_dependents()
    sums = sums / tl.where(total == 0, 1.0, total)[:, None]
    at_row = (token * KV_HEADS * GROUP + head) * splits + split
    tl.store(out + at_row[:, None] * HEAD_DIM + d[None, :], sums, mask=held)
    if SPLIT:
        tl.store(lse + at_row, peak + tl.log2(total), mask=row >= 0)


@triton.jit
def _join(
    parts: tl.tensor,
    lse: tl.tensor,
    out: tl.tensor,
    SPLITS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    DEPENDENT: tl.constexpr,
) -> None:
    """One row of one head: its parts, weighted by what each has seen."""
    at = tl.program_id(0).to(tl.int64)
    split = tl.arange(0, SPLITS)
    d = tl.arange(0, HEAD_DIM)
    if DEPENDENT:
        gdc_wait()
    logs = tl.load(lse + at * SPLITS + split)
    peak = tl.max(logs, 0)
    weights = tl.exp2(logs - tl.where(peak == float("-inf"), 0.0, peak))
    values = tl.load(parts + (at * SPLITS + split)[:, None] * HEAD_DIM + d[None, :])
    if DEPENDENT:
        gdc_launch_dependents()
    total = tl.sum(weights, 0)
    joined = tl.sum(values * weights[:, None], 0) / tl.where(total == 0, 1.0, total)
    tl.store(out + at * HEAD_DIM + d, joined)


ATTEND, JOIN = Kernel(_attend), Kernel(_join)


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
    """`refimpl.model.ops.paged_attention` on CUDA."""
    q = q if q.stride(1) == q.shape[2] and q.stride(2) == 1 else q.contiguous()
    tokens, heads, head_dim = q.shape
    bs, width = page_table.shape
    kv_heads = k_cache.shape[1]
    group = heads // kv_heads
    if not tokens:
        return torch.empty_like(q)
    plan = plan_of(bs, kv_heads, max_q_len * group, width, head_dim, q.element_size(), multiprocessors(q.device))
    every_row_is_asked = tokens == bs * max_q_len
    out = _buffer(every_row_is_asked, 0, (tokens, heads, head_dim), q.dtype, q.device)
    parts, lse = out, out
    if plan.splits > 1:
        shape = (tokens, heads, plan.splits)
        parts = _buffer(every_row_is_asked, 0, (*shape, head_dim), torch.float32, q.device)
        lse = _buffer(every_row_is_asked, float("-inf"), shape, torch.float32, q.device)
    ATTEND.launch(
        (-(-max_q_len * group // plan.block_m), kv_heads * plan.splits, bs),
        (
            q,
            k_cache,
            v_cache,
            page_table,
            kv_lens.contiguous(),
            q_starts.contiguous(),
            q if tail_mask is None else tail_mask.contiguous().view(torch.uint8),
            parts,
            lse,
        ),
        (
            q.stride(0),
            k_cache.stride(0),
            v_cache.stride(0),
            page_table.stride(0),
            (head_dim**-0.5 if scale is None else scale) * LOG2_E,
        ),
        free=(
            max_q_len,
            0 if tail_mask is None else tail_mask.shape[2],
            0 if window is None else window,
            plan.splits,
        ),
        constants=(
            kv_heads,
            group,
            head_dim,
            plan.block_m,
            plan.block_n,
            plan.splits > 1,
            causal,
            tail_mask is not None,
            window is not None,
            settled,
        ),
        warps=plan.warps,
        stages=plan.stages,
    )
    if plan.splits > 1:
        JOIN.launch((tokens * heads, 1, 1), (parts, lse, out), constants=(plan.splits, head_dim), warps=JOIN_WARPS)
    return out


def _buffer(
    all_is_written: bool, otherwise: float, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> Tensor:
    """Room for results; filled only if the kernel leaves some of it out."""
    if all_is_written:
        return torch.empty(shape, dtype=dtype, device=device)
    return torch.full(shape, otherwise, dtype=dtype, device=device)
