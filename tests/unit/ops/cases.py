"""Random calls of the ops, with poison where an op must not look, for the reference's tests and for the kernels'."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Attention:
    """One call of paged attention: rows and entries of each request, and who sees what."""

    name: str
    q_lens: tuple[int, ...]
    kv_lens: tuple[int, ...]
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    causal: bool = True
    tail: int | None = None
    window: int | None = None
    more_rows: int = 0
    """How far `max_q_len` lies above the longest request."""
    more_tokens: int = 0
    """Tokens behind the last request's."""


ATTENTION = [
    Attention("decode", (1, 1, 1), (1, 70, 33)),
    Attention("decode of one request", (1,), (150,), heads=3, kv_heads=1),
    Attention("decode, five heads a group", (1, 1), (40, 90), heads=5, kv_heads=1, head_dim=64),
    Attention("decode, wide heads", (1, 1), (100, 65), heads=8, kv_heads=2, head_dim=128),
    Attention("verify", (4, 4), (4, 77)),
    Attention("verify, many rows", (16, 16), (130, 16), heads=5, kv_heads=1, head_dim=64),
    Attention("block", (8, 8), (8, 71), causal=False),
    Attention("tree", (6, 6), (6, 90), tail=6),
    Attention("tree, longer tail than rows", (3, 3), (9, 40), tail=8),
    Attention("tree, longer tail than request", (3, 3), (4, 40), tail=8),
    Attention("prefill", (5, 1, 40, 7), (5, 1, 40, 7)),
    Attention("prefill behind a prefix", (5, 1, 40), (75, 13, 41), heads=6),
    Attention("prefill, wide heads", (33, 70), (33, 70), heads=8, kv_heads=2, head_dim=128),
    Attention("prefill with room", (5, 1, 9), (5, 20, 9), more_rows=7, more_tokens=6),
    Attention("window", (1, 1, 1), (3, 70, 129), window=16),
    Attention("window, verify", (4, 4), (4, 90), window=16),
    Attention("window, prefill", (50, 20), (50, 60), window=8),
    Attention("window, block", (4, 4), (10, 90), causal=False, window=16),
    Attention("window, tree", (6, 6), (6, 90), tail=6, window=3),
    Attention("window of one", (1, 4), (9, 9), window=1),
    Attention("empty requests", (1, 1, 1), (0, 5, 0)),
    Attention("empty block", (4, 4), (0, 9), causal=False),
    Attention("request without rows", (3, 0, 2), (3, 50, 9)),
]


def attention_call(case: Attention, dtype: torch.dtype, device: str, seed: int = 0) -> dict[str, Any]:
    """The arguments of `paged_attention`. Entries past a request's length name slots of NaN; slots are shuffled."""
    random = torch.Generator().manual_seed(seed)
    bs, width = len(case.q_lens), max(case.kv_lens) + 13
    used = sum(case.kv_lens)
    slots = 1 + torch.randperm(2 * used + 2, generator=random)
    page_table = slots[-1].repeat(bs, width).int()
    k_cache, v_cache = torch.full((2, 2 * used + 3, case.kv_heads, case.head_dim), float("nan"))
    taken = slots[:used]
    k_cache[taken] = torch.randn(used, case.kv_heads, case.head_dim, generator=random)
    v_cache[taken] = torch.randn(used, case.kv_heads, case.head_dim, generator=random)
    at = 0
    for b, kv_len in enumerate(case.kv_lens):
        page_table[b, :kv_len] = taken[at : at + kv_len]
        at += kv_len
    q_starts = torch.tensor((0, *case.q_lens)).cumsum(0).int()
    tokens, rows = sum(case.q_lens) + case.more_tokens, max(case.q_lens) + case.more_rows
    q = torch.randn(tokens, case.heads, case.head_dim, generator=random)
    tail_mask = None
    if case.tail is not None:
        tail_mask = torch.rand(bs, rows, case.tail, generator=random) < 0.5
    return {
        "q": q.to(device, dtype),
        "k_cache": k_cache.to(device, dtype),
        "v_cache": v_cache.to(device, dtype),
        "page_table": page_table.to(device),
        "kv_lens": torch.tensor(case.kv_lens).int().to(device),
        "q_starts": q_starts.to(device),
        "max_q_len": rows,
        "causal": case.causal,
        "tail_mask": None if tail_mask is None else tail_mask.to(device),
        "window": case.window,
        "scale": 0.2,
    }


def attend_by_loops(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    page_table: Tensor,
    kv_lens: Tensor,
    q_starts: Tensor,
    max_q_len: int,
    causal: bool,
    tail_mask: Tensor | None,
    window: int | None,
    scale: float,
) -> Tensor:
    """Attention as its docstring says it, one row, one head and one entry at a time, in float64."""
    out = torch.zeros(q.shape, dtype=torch.float64)
    group = q.shape[1] // k_cache.shape[1]
    for b, kv_len in enumerate(kv_lens.tolist()):
        first, last = q_starts[b].item(), q_starts[b + 1].item()
        for row in range(last - first):
            own = kv_len - (last - first) + row
            seen = [j for j in range(kv_len) if _sees(b, row, own, j, kv_len, causal, tail_mask, window)]
            slots = [page_table[b, j].item() for j in seen]
            for head in range(q.shape[1]) if seen else ():
                keys = k_cache[slots, head // group].double()
                scores = keys @ q[first + row, head].double() * scale
                out[first + row, head] = scores.softmax(0) @ v_cache[slots, head // group].double()
    return out


def _sees(
    b: int, row: int, own: int, j: int, kv_len: int, causal: bool, tail_mask: Tensor | None, window: int | None
) -> bool:
    if window is not None and j <= own - window:
        return False
    if tail_mask is not None:
        at = j - (kv_len - tail_mask.shape[2])
        return at < 0 or bool(tail_mask[b, row, at])
    return j <= own or not causal


def rope_table(positions: int, head_dim: int, theta: float = 10_000.0) -> Tensor:
    """float32 [positions, hd]: cosines, then sines."""
    angles = torch.outer(torch.arange(positions), theta ** (-torch.arange(0, head_dim, 2) / head_dim))
    return torch.cat((angles.cos(), angles.sin()), dim=-1)
