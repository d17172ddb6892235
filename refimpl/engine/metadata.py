"""Where the attention of a captured graph has its page table from, and what that says about the shared tables.

Source: sgl-project/sglang, the two hooks of ``layers/attention/base_attn_backend.py``, one outside of the graph and one
inside, and its ``SharedReadBoundary``: pull request 34052 (August 2026).
"""

from __future__ import annotations

from typing import ClassVar

import torch

from refimpl.engine.decode_inputs import DecodeInputs
from refimpl.engine.pools import ReqToTokenPool, SWATokenToKVPoolAllocator
from refimpl.fences import SharedReadBoundary
from refimpl.model import ops


class SnapshotMetadata:
    """Reads the tables before the replay alone: the graph's page table is a snapshot, as of a host-launched kernel.

    Args:
        req_to_token_pool: whose rows become the page table.
        swa: the map of the sliding layers; None without.

    Attributes:
        boundary: where it reads the tables last.
    """

    boundary: ClassVar[SharedReadBoundary] = SharedReadBoundary.PRE_REPLAY

    def __init__(self, req_to_token_pool: ReqToTokenPool, swa: SWATokenToKVPoolAllocator | None) -> None:
        self._pool, self._swa = req_to_token_pool, swa

    def init_forward_metadata_out_graph(
        self, req_pool_indices: torch.Tensor, seq_lens: torch.Tensor, inputs: DecodeInputs, bucket: int
    ) -> None:
        """Copies rows, lengths and page table of a batch into static inputs, padded to ``bucket`` requests.

        Args:
            req_pool_indices, seq_lens: ``[bs]`` int64, the batch's.
            inputs: written.
            bucket: requests of the graph.

        Order:
            On the current stream, before the replay. Reads ``req_to_token`` and ``full_to_swa``, which schedule writes.
        """
        ops.load_rows(
            self._pool.req_to_token,
            req_pool_indices,
            seq_lens,
            inputs.req_pool_indices,
            inputs.seq_lens,
            inputs.page_table,
            bucket,
        )
        if self._swa is not None and inputs.swa_page_table is not None:
            inputs.swa_page_table[:bucket].copy_(self._swa.translate(inputs.page_table[:bucket]))

    def init_forward_metadata_in_graph(self, inputs: DecodeInputs) -> None:
        """What a graph begins with: here nothing.

        Args:
            inputs: of the graph's size.

        Order:
            Captured; so it runs at each replay.
        """


class LiveMetadata(SnapshotMetadata):
    """Reads the tables once more in the replay: the metadata kernel is captured, and what it finds then counts.

    Without a launch of its own it costs less; but an event behind ``load_batch`` says nothing about it.

    Source: sgl-project/sglang, pull request 29843 (July 2026), and those about what broke: 31686, 33587, 36335, 37988.
    """

    boundary: ClassVar[SharedReadBoundary] = SharedReadBoundary.IN_REPLAY

    def init_forward_metadata_in_graph(self, inputs: DecodeInputs) -> None:
        """The same copy again, from the tables as they are at the replay.

        Order:
            Captured. Reads ``req_to_token`` and ``full_to_swa`` when the replay runs.
        """
        self.init_forward_metadata_out_graph(inputs.req_pool_indices, inputs.seq_lens, inputs, inputs.batch_size)
