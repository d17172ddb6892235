"""DFLASH: the draft fills a block of masks in one forward, the target verifies the block in another.

Source: sgl-project/sglang, ``speculative/dflash_worker_v2.py``; arXiv 2602.06036.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import torch

from refimpl.engine.decode_inputs import DecodeInputs, rows_behind
from refimpl.engine.forward_batch import ForwardBatch, ForwardResult, OnPublish, pack_first
from refimpl.engine.future_map import RelayPayload, Shapes
from refimpl.engine.graph_runner import DecodeCudaGraphRunner, Outputs
from refimpl.engine.workers.base import Resources, Worker
from refimpl.engine.workers.draft_common import TOKEN, draft_pool, verify_drafts
from refimpl.engine.workers.target import TargetForward, first_tokens
from refimpl.model import ops
from refimpl.model.attention import PagedAttention
from refimpl.model.dflash import DFlash
from refimpl.model.sampling import Purpose, SamplingMode, draw


class DFlashWorker(Worker):
    """Draft, verify, publish, and the draft's cache for what was accepted.

    Args:
        resources: the target and its memory.
        draft: the DFLASH model. Its cache has the target's slots: entries before the committed length are context;
            those of the block are scratch, written over by the next block before anything reads them.

    Order:
        ``draft`` and ``verify`` each copy their snapshot of ``req_to_token``; the verify's is the last shared read, so
        it has the mailbox. ``draft_extend`` runs on the verify's page table, also where graphs read the live tables:
        to read them again would come behind ``read_done``, and its K and V belong into the slots that were verified.
    """

    relay_shapes: Shapes = MappingProxyType({})
    verify_done_at_end = True

    def __init__(self, resources: Resources, draft: DFlash) -> None:
        self.resources, self.draft = resources, draft
        self.block = self.alloc_len = draft.config.block_size
        self.target = TargetForward(resources, draft.config.feature_layers)
        graphs = resources.graphs
        self.draft_pool = draft_pool(resources, draft.config, draft.config.num_hidden_layers)
        window = resources.target.config.sliding_window
        draft_inputs, verify_inputs = (
            DecodeInputs.allocate(graphs.device, max(graphs.batch_sizes), resources.width, tokens, of)
            for tokens, of in (({"bonus_tokens": TOKEN}, None), ({}, window))
        )
        pool, swa = resources.req_to_token_pool, resources.swa
        self.draft_runner = DecodeCudaGraphRunner("draft", graphs, draft_inputs, self._draft, pool)
        self.verify_runner = DecodeCudaGraphRunner("verify", graphs, verify_inputs, self._verify, pool, swa)
        self.extend_runner = DecodeCudaGraphRunner(
            "draft_extend", graphs, verify_inputs, self._extend, pool, swa, shares_inputs=True
        )

    @property
    def last_shared_read_runner(self) -> DecodeCudaGraphRunner:
        return self.verify_runner

    def runners(self) -> tuple[DecodeCudaGraphRunner, ...]:
        return self.draft_runner, self.verify_runner, self.extend_runner

    def relay_into(self, batch_size: int) -> Mapping[str, torch.Tensor]:
        return self.draft_runner.tokens_of(batch_size)

    def forward_extend(self, batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        on_publish(batch.seq_lens)
        assert batch.extend is not None, "a prefill has prompts"
        hidden, features, full = self.target.extend(batch)
        tokens = first_tokens(self.target, batch, hidden)
        assert features is not None, "the draft names its feature layers"
        self._append(features, batch.extend.positions, full.slots)
        return ForwardResult(pack_first(tokens, self.block), RelayPayload(tokens))

    def forward_decode(self, batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        assert batch.relay is not None, "a decode starts from what the last step relayed"
        self.draft_runner.execute(batch, {"bonus_tokens": batch.relay.bonus_tokens})
        out = self.verify_runner.execute(batch, {}, publish_read_done=True)
        on_publish(out["new_seq_lens"])
        self.extend_runner.replay(batch)
        return ForwardResult(out["packed"], RelayPayload(out["bonus_tokens"]))

    def _draft(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        """One bidirectional forward over ``[anchor, mask, …]``; slot k draws the token k behind the anchor."""
        rows = rows_behind(inputs, self.block, causal=False)
        block = self.draft.block(inputs.tokens["bonus_tokens"])
        attention = PagedAttention(self.draft_pool.k, self.draft_pool.v, rows.full)
        hidden = self.draft(block.view(-1), rows.positions.view(-1), attention)
        guesses = hidden.view(*block.shape, -1)[:, 1:]
        logits = self.target.logits_without_mask(self.draft.logits(guesses))
        tensors = self.resources.sampling.rows(inputs.req_pool_indices)
        drawn = draw(logits, tensors, mode, rows.positions[:, 1:], Purpose.DRAFT)
        outputs = {"bonus_tokens": inputs.tokens["bonus_tokens"], "draft_tokens": drawn.tokens}
        # The very distribution that the drafts were drawn from: one computed again would not be unbiased.
        return outputs if drawn.probs is None else {**outputs, "draft_probs": drawn.probs}

    def _verify(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        drafted = self.draft_runner.outputs_of(inputs.batch_size, mode)
        tokens = drafted["bonus_tokens"], drafted["draft_tokens"]
        return verify_drafts(self.target, *tokens, drafted.get("draft_probs"), inputs, mode)

    def _extend(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        """The block's features become context. Those of rejected drafts too: the next block covers their entries."""
        rows = rows_behind(inputs, self.block)
        features = self.verify_runner.outputs_of(inputs.batch_size, mode)["features"]
        self._append(features.flatten(0, 1), rows.positions.view(-1), rows.full.slots)
        return {}

    def _append(self, features: torch.Tensor, positions: torch.Tensor, slots: torch.Tensor) -> None:
        context = self.draft.context(features)
        for layer, (k_cache, v_cache) in enumerate(zip(self.draft_pool.k, self.draft_pool.v, strict=True)):
            k, v = self.draft.context_kv(layer, context, positions)
            ops.store_kv(k, v, k_cache, v_cache, slots)
