"""The target's forwards, which every worker runs: over prompts, and over a block of rows behind the cache."""

from __future__ import annotations

import torch

from refimpl.engine.decode_inputs import DecodeInputs, Rows
from refimpl.engine.forward_batch import ForwardBatch
from refimpl.engine.workers.base import Resources
from refimpl.model.acceptance import Accepted, verify_chain
from refimpl.model.attention import PagedAttention, PagedMetadata
from refimpl.model.sampling import Purpose, SamplingMode, draw


class TargetForward:
    """The target over paged memory.

    Args:
        resources: the model and its memory.
        feature_layers: layers whose outputs the draft lives on.
    """

    def __init__(self, resources: Resources, feature_layers: tuple[int, ...] = ()) -> None:
        self.resources, self.feature_layers = resources, feature_layers
        self.config = resources.target.config

    def attention(self, full: PagedMetadata, sliding: PagedMetadata | None) -> PagedAttention:
        """The target's attention over its own pools."""
        pool = self.resources.kv_pool
        layers = self.config.sliding_layers if sliding is not None else ()
        return PagedAttention(pool.k, pool.v, full, sliding, layers)

    def extend(self, batch: ForwardBatch) -> tuple[torch.Tensor, torch.Tensor | None, PagedMetadata]:
        """Runs the prompts.

        Returns:
            Hidden states ``[T, d]`` after the final norm, the features ``[T, n * d]``, and where K and V went.

        Order:
            On ``forward_stream``; reads the rows of ``req_to_token`` when it runs, not a snapshot of the launch.
        """
        extend = batch.extend
        assert extend is not None, "a prefill has prompts"
        full, sliding = self.extend_metadata(batch)
        hidden, features = self.resources.target(
            extend.input_ids, extend.positions, self.attention(full, sliding), self.feature_layers
        )
        return hidden, features, full

    def extend_metadata(self, batch: ForwardBatch) -> tuple[PagedMetadata, PagedMetadata | None]:
        """Where the prompts' K and V go, in the full pool and in the sliding layers'."""
        extend, resources = batch.extend, self.resources
        assert extend is not None, "a prefill has prompts"
        longest = max(extend.lens)
        rows = resources.req_to_token_pool.req_to_token.index_select(0, batch.req_pool_indices)[:, :longest]
        kv_lens = batch.seq_lens.int()

        def metadata(slots: torch.Tensor, table: torch.Tensor, window: int | None) -> PagedMetadata:
            return PagedMetadata(slots.long(), table, kv_lens, extend.q_starts, longest, window=window)

        if resources.swa is None:
            return metadata(extend.out_cache_loc, rows, None), None
        twins = resources.swa.translate(extend.out_cache_loc)
        sliding = metadata(twins, resources.swa.translate(rows), self.config.sliding_window)
        return metadata(extend.out_cache_loc, rows, None), sliding

    def rows(self, tokens: torch.Tensor, rows: Rows) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Runs ``[bs, rows]`` tokens behind the cache.

        Returns:
            Logits ``[bs, rows, vocab]`` and features ``[bs, rows, n * d]``.
        """
        hidden, features = self.resources.target(
            tokens.reshape(-1), rows.positions.reshape(-1), self.attention(rows.full, rows.sliding), self.feature_layers
        )
        shape = tokens.shape
        logits = self.logits(hidden).view(*shape, -1)
        return logits, None if features is None else features.view(*shape, -1)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The target's scores of every token but the mask."""
        return self.logits_without_mask(self.resources.target.logits(hidden))

    def logits_without_mask(self, logits: torch.Tensor) -> torch.Tensor:
        """Rules out the mask, which stands for no text; in place."""
        logits[..., self.config.mask_token_id] = float("-inf")
        return logits

    def choose(
        self, logits: torch.Tensor, rows: torch.Tensor, places: torch.Tensor, mode: SamplingMode
    ) -> torch.Tensor:
        """One token a request from ``[bs, vocab]`` logits.

        Args:
            logits: of the last token.
            rows: ``[bs]`` int64, the requests' rows.
            places: ``[bs]`` int64, where the token will stand: its draw depends on the seed and on this alone.
            mode: known to the host.
        """
        return draw(logits, self.resources.sampling.rows(rows), mode, places, Purpose.TARGET).tokens

    def verify_chain(
        self,
        draft_tokens: torch.Tensor,
        draft_probs: torch.Tensor | None,
        logits: torch.Tensor,
        inputs: DecodeInputs,
        mode: SamplingMode,
    ) -> Accepted:
        """What the target accepts of ``[bs, k]`` drafts, by its ``[bs, k + 1, vocab]`` logits."""
        tensors = self.resources.sampling.rows(inputs.req_pool_indices)
        if self.resources.forced is not None:
            return self.resources.forced.accept(draft_tokens, logits.argmax(-1), tensors.seed, inputs.seq_lens)
        return verify_chain(draft_tokens, draft_probs, logits, inputs.seq_lens, tensors, mode)


def first_tokens(target: TargetForward, batch: ForwardBatch, hidden: torch.Tensor) -> torch.Tensor:
    """``[bs]`` int64: the token that follows each prompt."""
    assert batch.extend is not None, "a prefill has prompts"
    logits = target.logits(hidden.index_select(0, batch.extend.last_rows))
    return target.choose(logits, batch.req_pool_indices, batch.seq_lens, batch.mode)
