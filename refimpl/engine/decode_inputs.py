"""The static inputs of captured graphs, and the attention metadata that a graph makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from refimpl.model.attention import PagedMetadata


@dataclass(frozen=True)
class DecodeInputs:
    """Memory that ``load_batch`` fills and a replay reads: the snapshot of the batch.

    Args:
        req_pool_indices: ``[bs]`` int64; padded requests have row 0.
        seq_lens: ``[bs]`` int64; 0 for padded requests.
        page_table: ``[bs, width]`` int32, the requests' rows of ``req_to_token`` as they were at ``load_batch``; where
            metadata is made in the graph, as they were when the replay began.
        swa_page_table: the same in slots of the sliding layers' pool; None without such layers.
        window: what sliding layers see.
        tokens: by name, what the step starts from, ``[bs, …]``.
    """

    req_pool_indices: torch.Tensor
    seq_lens: torch.Tensor
    page_table: torch.Tensor
    swa_page_table: torch.Tensor | None = None
    window: int | None = None
    tokens: Mapping[str, torch.Tensor] = field(default_factory=dict)

    @classmethod
    def allocate(
        cls,
        device: str,
        max_batch: int,
        width: int,
        tokens: Mapping[str, tuple[tuple[int, ...], torch.dtype]],
        window: int | None = None,
    ) -> DecodeInputs:
        """Zeroed memory for the largest batch: a graph of any size uses its first rows."""
        table = torch.zeros(max_batch, width, dtype=torch.int32, device=device)
        return cls(
            req_pool_indices=torch.zeros(max_batch, dtype=torch.int64, device=device),
            seq_lens=torch.zeros(max_batch, dtype=torch.int64, device=device),
            page_table=table,
            swa_page_table=torch.zeros_like(table) if window is not None else None,
            window=window,
            tokens={n: torch.zeros(max_batch, *shape, dtype=t, device=device) for n, (shape, t) in tokens.items()},
        )

    @property
    def batch_size(self) -> int:
        return int(self.seq_lens.shape[0])

    def clear(self) -> None:
        """Makes every request a padded one: row 0, length 0, slot 0."""
        for rows in (self.req_pool_indices, self.seq_lens, self.page_table, *self.tokens.values()):
            rows.zero_()
        if self.swa_page_table is not None:
            self.swa_page_table.zero_()

    def first(self, bs: int) -> DecodeInputs:
        """Views of the first ``bs`` requests."""
        return DecodeInputs(
            self.req_pool_indices[:bs],
            self.seq_lens[:bs],
            self.page_table[:bs],
            None if self.swa_page_table is None else self.swa_page_table[:bs],
            self.window,
            {name: rows[:bs] for name, rows in self.tokens.items()},
        )


@dataclass(frozen=True)
class Rows:
    """Where the new tokens of a step go, the same number for each request.

    Args:
        positions: ``[bs, rows]`` int64.
        full: metadata of the layers that see everything.
        sliding: metadata of the sliding layers; None without.
    """

    positions: torch.Tensor
    full: PagedMetadata
    sliding: PagedMetadata | None


def rows_behind(inputs: DecodeInputs, rows: int, **visible: Any) -> Rows:
    """``rows`` new tokens of each request, right behind those in the cache.

    Args:
        inputs: the snapshot.
        rows: new tokens a request.
        visible: ``causal`` or ``tail_mask`` of :class:`PagedMetadata`, where not every token sees those before it.
    """
    device, bs = inputs.seq_lens.device, inputs.batch_size
    positions = inputs.seq_lens[:, None] + torch.arange(rows, device=device)
    kv_lens = (inputs.seq_lens + rows).int()
    q_starts = torch.arange(0, (bs + 1) * rows, rows, dtype=torch.int32, device=device)

    def metadata(page_table: torch.Tensor, window: int | None) -> PagedMetadata:
        slots = page_table.gather(1, positions).long().view(-1)
        return PagedMetadata(slots, page_table, kv_lens, q_starts, rows, window=window, **visible)

    sliding = None if inputs.swa_page_table is None else metadata(inputs.swa_page_table, inputs.window)
    return Rows(positions, metadata(inputs.page_table, None), sliding)
