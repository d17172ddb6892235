"""Multi-layer EAGLE: a head for each draft of the chain, all of them run behind the verify.

Source: sgl-project/sglang, ``speculative/multi_layer_eagle_worker_v2.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

from refimpl.engine.config import EngineConfig
from refimpl.engine.decode_inputs import DecodeInputs
from refimpl.engine.errors import EngineError
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
    stack_drawn,
    take_rows,
    verify_drafts,
)
from refimpl.engine.workers.target import TargetForward, first_tokens
from refimpl.fences import publishes_at_verify
from refimpl.model.attention import PagedAttention, PagedMetadata
from refimpl.model.mtp import MultiLayerEagle
from refimpl.model.sampling import Drawn, Purpose, SamplingMode, draw


@dataclass(frozen=True)
class HeadRows:
    """Rows that all heads run over, ``T`` of them, and the last of each request that counts.

    Args:
        following: ``[T]`` int64, the token behind each row's.
        hidden: ``[T, d]``, the target's features of each row, fused.
        positions: ``[T]`` int64.
        metadata: where the heads' K and V go.
        last: ``[bs]`` int64, the row of each request's last committed token; its ``following`` is the bonus token.
        seq_lens: ``[bs]`` int64, committed tokens: the bonus token's place.
        req_pool_indices: ``[bs]`` int64.
    """

    following: torch.Tensor
    hidden: torch.Tensor
    positions: torch.Tensor
    metadata: PagedMetadata
    last: torch.Tensor
    seq_lens: torch.Tensor
    req_pool_indices: torch.Tensor


class MtpWorker(Worker):
    """One head a draft: head ``i`` guesses the token ``2 + i`` behind its row, from the token ``1 + i`` behind it.

    The drafts that a step verifies were made at the end of the step before, and relayed. So head ``i`` has read ``i``
    of them for its last ``i`` rows, and what it keeps of those rows is wrong where drafts are rejected. The last
    ``k - 1`` rows are therefore run once more, with the tokens that came out: their tokens and fused features are
    relayed too, and ``draft_extend`` begins that many rows in front of the verified ones. (SGLang does this for hybrid
    models alone.)

    Args:
        resources: the target and its memory.
        draft: the heads. Their cache, a layer each, has the target's slots.

    Order:
        ``verify`` and ``draft_extend`` each copy their snapshot of ``req_to_token``; the latter has the mailbox. The
        new lengths are published between the two. With a plan stream both are loaded there; what the step before
        drafted is gathered on ``forward_stream``, so ``draft_done`` stands behind that.
    """

    allocates_on_plan_stream = False

    def __init__(self, resources: Resources, draft: MultiLayerEagle) -> None:
        self.resources, self.draft = resources, draft
        self.num_steps = draft_steps(draft.config.num_steps, resources.config)
        self.num_front = self.num_steps - 1
        self.block = self.num_steps + 1
        self.alloc_len = mtp_alloc_len(draft, resources.config)
        self.target = TargetForward(resources, draft.config.feature_layers)
        self.draft_pool = draft_pool(resources, draft.config, self.num_steps)
        vocabulary, hidden_size = resources.target.config.vocab_size, draft.config.hidden_size
        drafts: Shapes = {
            "draft_tokens": ((self.num_steps,), torch.int64),
            "draft_probs": ((self.num_steps, vocabulary), torch.float32),
        }
        front: Shapes = {
            "front_following": ((self.num_front,), torch.int64),
            "front_hidden": ((self.num_front, hidden_size), resources.target.dtype),
        }
        self.relay_shapes: Shapes = {**drafts, **front}
        self._front_names = tuple(front)
        self.plan = make_plan(resources)
        self._verify_publishes = publishes_at_verify(resources.config.fences.read_done)
        window = resources.target.config.sliding_window
        self.verify_runner = make_runner(resources, "verify", self._verify, {"bonus_tokens": TOKEN, **drafts}, window)
        self.extend_runner = make_runner(resources, "draft_extend", self._extend, front)

    @property
    def last_shared_read_runner(self) -> DecodeCudaGraphRunner:
        return self.verify_runner if self._verify_publishes else self.extend_runner

    def runners(self) -> tuple[DecodeCudaGraphRunner, ...]:
        return self.verify_runner, self.extend_runner

    def relayed(self, mode: SamplingMode) -> Iterable[str]:
        drawn = mode is not SamplingMode.GREEDY
        return [name for name in self.relay_shapes if drawn or name != "draft_probs"]

    def relay_into(self, batch_size: int) -> Mapping[str, torch.Tensor]:
        if self.plan is not None:
            return NOWHERE
        return {**self.verify_runner.tokens_of(batch_size), **self.extend_runner.tokens_of(batch_size)}

    def forward_extend(self, batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        on_publish(batch.seq_lens)
        extend = batch.extend
        assert extend is not None, "a prefill has prompts"
        hidden, features, full = self.target.extend(batch)
        tokens = first_tokens(self.target, batch, hidden)
        assert features is not None, "the draft names its feature layers"
        following, fused = following_tokens(extend, tokens), self.draft.fuse(features)
        drafted = self._run_heads(
            HeadRows(
                following, fused, extend.positions, full, extend.last_rows, batch.seq_lens, batch.req_pool_indices
            ),
            batch.mode,
        )
        # Of a prompt shorter than that these are rows of another, but their places lie before its beginning.
        front = (extend.last_rows[:, None] + self._front_offsets(tokens.device)).clamp(min=0)
        relay = {"front_following": following[front], "front_hidden": fused[front]}
        return ForwardResult(pack_first(tokens, self.block), RelayPayload(tokens, {**drafted, **relay}))

    def forward_decode(self, batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        assert batch.relay is not None, "a decode starts from what the last step relayed"
        extras = dict(batch.relay.extras)
        front = {name: extras.pop(name) for name in self._front_names}
        block = {"bonus_tokens": batch.relay.bonus_tokens, **extras}
        verify_publishes = self._verify_publishes
        if self.plan is None:
            verified = self.verify_runner.execute(batch, block, verify_publishes)
            on_publish(verified["new_seq_lens"])
            extended = self.extend_runner.execute(batch, front, not verify_publishes)
        else:
            self.plan.drafted_before()
            verified = self.plan.verify(self.verify_runner, batch, block, verify_publishes)
            on_publish(verified["new_seq_lens"])
            extended = self.plan.extend(self.extend_runner, batch, front, not verify_publishes)
        return ForwardResult(verified["packed"], RelayPayload(verified["bonus_tokens"], extended))

    def _verify(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        # A greedy request among sampled ones may bring the probabilities of an older owner of its row: its target's
        # distribution is on one token, so they decide nothing.
        probs = None if mode is SamplingMode.GREEDY else inputs.tokens["draft_probs"]
        started = inputs.tokens
        return verify_drafts(self.target, started["bonus_tokens"], started["draft_tokens"], probs, inputs, mode)

    def _extend(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        """All heads over the front and the verified rows."""
        verified = self.verify_runner.outputs_of(inputs.batch_size, mode)
        following = torch.cat([inputs.tokens["front_following"], verified["following"]], dim=1)
        fused = self.draft.fuse(verified["features"])
        hidden = torch.cat([inputs.tokens["front_hidden"], fused], dim=1)
        positions, metadata = rows_around(inputs, self.num_front, self.block)
        last = self.num_front + verified["num_accepted"]
        begins = torch.arange(inputs.batch_size, device=last.device) * following.shape[1]
        rows = HeadRows(
            following.view(-1),
            hidden.flatten(0, 1),
            positions.view(-1),
            metadata,
            begins + last,
            verified["new_seq_lens"],
            inputs.req_pool_indices,
        )
        drafted = self._run_heads(rows, mode)
        front = last[:, None] + self._front_offsets(last.device)
        return {**drafted, "front_following": following.gather(1, front), "front_hidden": take_rows(hidden, front)}

    def _run_heads(self, rows: HeadRows, mode: SamplingMode) -> Outputs:
        """One head after another; each draws a draft behind the last row, which the next one reads there."""
        attention = PagedAttention(self.draft_pool.k, self.draft_pool.v, rows.metadata)
        tensors = self.resources.sampling.rows(rows.req_pool_indices)
        following, hidden = rows.following, rows.hidden
        drawn: list[Drawn] = []
        for step in range(self.num_steps):
            if step > 0:
                # Rows behind a last one get a token that means nothing, as they do themselves.
                following = following.roll(-1).index_copy(0, rows.last, drawn[-1].tokens)
            hidden = self.draft(step, following, hidden, rows.positions, attention)
            guesses = self.draft.logits(step, hidden.index_select(0, rows.last))
            logits = self.target.logits_without_mask(guesses)
            drawn.append(draw(logits, tensors, mode, rows.seq_lens + 1 + step, Purpose.DRAFT))
        return stack_drawn(drawn)

    def _front_offsets(self, device: torch.device) -> torch.Tensor:
        """From a request's last committed row, the rows whose last heads read drafts there."""
        return torch.arange(1 - self.num_front, 1, device=device)


def rows_around(inputs: DecodeInputs, front: int, block: int) -> tuple[torch.Tensor, PagedMetadata]:
    """The last ``front`` committed tokens of each request once more, and ``block`` new ones behind them.

    Args:
        inputs: the snapshot.
        front: may be more than a text has: what would stand before its beginning goes to slot 0, at position 0, and
            neither sees an entry nor is one.
        block: rows of the verify.

    Returns:
        Positions ``[bs, front + block]`` int64, and where K and V go.
    """
    device, bs, count = inputs.seq_lens.device, inputs.batch_size, front + block
    places = inputs.seq_lens[:, None] + torch.arange(-front, block, device=device)
    positions = places.clamp(min=0)
    slots = inputs.page_table.gather(1, positions).long() * (places >= 0)
    metadata = PagedMetadata(
        slots=slots.view(-1),
        page_table=inputs.page_table,
        kv_lens=(inputs.seq_lens + block).int(),
        q_starts=torch.arange(0, (bs + 1) * count, count, dtype=torch.int32, device=device),
        max_q_len=count,
    )
    return positions, metadata


def mtp_alloc_len(draft: MultiLayerEagle, config: EngineConfig) -> int:
    """Slots of the rows that are verified, the bonus token's among them.

    Raises:
        EngineError: a tree is asked for.
    """
    if config.draft_topk != 1:
        raise EngineError(f"draft_topk={config.draft_topk}: a multi-layer EAGLE drafts a chain, use 1")
    return draft_steps(draft.config.num_steps, config) + 1
