"""EAGLE: one head of one layer drafts a chain token by token, the target verifies it in one forward.

Source: sgl-project/sglang, ``speculative/eagle_worker_v2.py``; arXiv 2503.01840.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from refimpl.engine.config import EngineConfig
from refimpl.engine.decode_inputs import DecodeInputs, rows_behind
from refimpl.engine.forward_batch import ForwardBatch, ForwardResult, OnPublish, pack_first
from refimpl.engine.future_map import NOWHERE, RelayPayload, Shapes
from refimpl.engine.graph_runner import DecodeCudaGraphRunner, Outputs
from refimpl.engine.workers.base import Resources, Worker
from refimpl.engine.workers.draft_common import (
    TOKEN,
    draft_pool,
    draft_steps,
    following_tokens,
    make_plan,
    make_runner,
    rows_one_by_one,
    stack_drawn,
    take_rows,
    verify_drafts,
)
from refimpl.engine.workers.target import TargetForward, first_tokens
from refimpl.fences import publishes_at_verify
from refimpl.model.attention import PagedAttention
from refimpl.model.eagle import Eagle3
from refimpl.model.sampling import Drawn, Purpose, SamplingMode, draw


class EagleWorker(Worker):
    """An EAGLE head that drafts a chain of ``k`` tokens.

    With ``n`` tokens committed and the bonus token at ``n``, the head's cache has entries ``0..n-1``: entry ``t`` is
    made of the target's feature at ``t`` and of the token at ``t + 1``. The hidden state of the last one, which the
    step before relayed, gives the first draft; each later draft takes one forward and one scratch entry behind them.
    After the verify ``draft_extend`` writes the entries of all accepted tokens, over the scratch, from the target's
    own features.

    Args:
        resources: the target and its memory.
        draft: the head. Its cache has the target's slots.

    Order:
        ``draft``, ``verify`` and ``draft_extend`` each copy their snapshot of ``req_to_token``. The new lengths are
        published between the last two, so the scheduler prepares the next step while ``draft_extend`` runs; but that
        one has the mailbox, as its ``load_batch`` is the last shared read. With a plan stream the latter two are
        loaded there; what was drafted then goes through static inputs of the verify.
    """

    allocates_on_plan_stream = False

    def __init__(self, resources: Resources, draft: Eagle3) -> None:
        self.resources, self.draft = resources, draft
        self.num_steps = draft_steps(draft.config.num_steps, resources.config)
        self.block = self.num_steps + 1
        self.alloc_len = chain_alloc_len(draft, resources.config)
        self.target = TargetForward(resources, draft.config.feature_layers)
        self.draft_pool = draft_pool(resources, draft.config, layers=1)
        hidden = ((draft.config.hidden_size,), resources.target.dtype)
        self.relay_shapes: Shapes = {"hidden_states": hidden}
        self.drafted = self._drafted_shapes()
        self.plan = make_plan(resources)
        window = resources.target.config.sliding_window
        starts: Shapes = {} if self.plan is None else {"bonus_tokens": TOKEN, **self.drafted}
        self.draft_runner = make_runner(
            resources, "draft", self._draft, {"bonus_tokens": TOKEN, "hidden_states": hidden}
        )
        self.verify_runner = make_runner(resources, "verify", self._verify, starts, window)
        self.extend_runner = make_runner(resources, "draft_extend", self._extend, {})
        self._verify_publishes = publishes_at_verify(resources.config.fences.read_done)

    @property
    def last_shared_read_runner(self) -> DecodeCudaGraphRunner:
        return self.verify_runner if self._verify_publishes else self.extend_runner

    def runners(self) -> tuple[DecodeCudaGraphRunner, ...]:
        return self.draft_runner, self.verify_runner, self.extend_runner

    def relay_into(self, batch_size: int) -> Mapping[str, torch.Tensor]:
        return NOWHERE if self.plan is not None else self.draft_runner.tokens_of(batch_size)

    def forward_extend(self, batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        on_publish(batch.seq_lens)
        extend = batch.extend
        assert extend is not None, "a prefill has prompts"
        hidden, features, full = self.target.extend(batch)
        tokens = first_tokens(self.target, batch, hidden)
        assert features is not None, "the draft names its feature layers"
        drafted = self.draft(
            following_tokens(extend, tokens),
            self.draft.fuse(features),
            extend.positions,
            PagedAttention(self.draft_pool.k, self.draft_pool.v, full),
        )
        relay = RelayPayload(tokens, {"hidden_states": drafted.index_select(0, extend.last_rows)})
        return ForwardResult(pack_first(tokens, self.block), relay)

    def forward_decode(self, batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        assert batch.relay is not None, "a decode starts from what the last step relayed"
        bonus = {"bonus_tokens": batch.relay.bonus_tokens}
        starts = {**bonus, **batch.relay.extras}
        verify_publishes = self._verify_publishes
        if self.plan is None:
            self.draft_runner.execute(batch, starts)
            verified = self.verify_runner.execute(batch, {}, verify_publishes)
            on_publish(verified["new_seq_lens"])
            extended = self.extend_runner.execute(batch, {}, not verify_publishes)
        else:
            drafted = self.plan.draft(self.draft_runner, batch, starts)
            block = {**bonus, **{name: drafted[name] for name in self.drafted}}
            verified = self.plan.verify(self.verify_runner, batch, block, verify_publishes)
            on_publish(verified["new_seq_lens"])
            extended = self.plan.extend(self.extend_runner, batch, {}, not verify_publishes)
        return ForwardResult(verified["packed"], RelayPayload(verified["bonus_tokens"], extended))

    def _drafted_shapes(self) -> Shapes:
        """What the draft leaves for the verify, as its static inputs hold it where there is a plan stream."""
        return {"draft_tokens": ((self.num_steps,), torch.int64)}

    def _draft(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        """Draws a token, runs the head on it, and so on."""
        tensors = self.resources.sampling.rows(inputs.req_pool_indices)
        hidden = inputs.tokens["hidden_states"]
        # Where the drafts stand, the first one behind the bonus token; a draw depends on that place.
        places = inputs.seq_lens + torch.arange(1, self.block, device=hidden.device)[:, None]
        scratch = rows_one_by_one(inputs, self.num_steps - 1)
        drawn: list[Drawn] = []
        for step in range(self.num_steps):
            if step > 0:
                rows = scratch[step - 1]
                attention = PagedAttention(self.draft_pool.k, self.draft_pool.v, rows.full)
                hidden = self.draft(drawn[-1].tokens, hidden, rows.positions, attention)
            logits = self.target.logits_without_mask(self.draft.logits(hidden))
            drawn.append(draw(logits, tensors, mode, places[step], Purpose.DRAFT))
        return {"bonus_tokens": inputs.tokens["bonus_tokens"], **stack_drawn(drawn)}

    def _drafted_for(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        """What the draft left: in its graph's outputs, where they lie, or where a plan stream copied them to."""
        drafted = self.draft_runner.outputs_of(inputs.batch_size, mode)
        return {**drafted, **inputs.tokens}

    def _verify(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        drafted = self._drafted_for(inputs, mode)
        tokens = drafted["bonus_tokens"], drafted["draft_tokens"]
        return verify_drafts(self.target, *tokens, drafted.get("draft_probs"), inputs, mode)

    def _extend(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        """The head over the verified rows, those of rejected drafts too: the next step writes over their entries."""
        verified = self.verify_runner.outputs_of(inputs.batch_size, mode)
        rows = rows_behind(inputs, self.block)
        hidden = self.draft(
            verified["following"].view(-1),
            self.draft.fuse(verified["features"].flatten(0, 1)),
            rows.positions.view(-1),
            PagedAttention(self.draft_pool.k, self.draft_pool.v, rows.full),
        ).view(inputs.batch_size, self.block, -1)
        return {"hidden_states": take_rows(hidden, verified["num_accepted"][:, None]).squeeze(1)}


def chain_alloc_len(draft: Eagle3, config: EngineConfig) -> int:
    """Slots of the rows that are verified, the bonus token's among them; the scratch of the draft is within them."""
    return draft_steps(draft.config.num_steps, config) + 1
