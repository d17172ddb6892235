"""What drafts that write a chain or a tree have in common: their cache, their steps, and the verify of a chain."""

from __future__ import annotations

import torch

from refimpl.engine.config import EngineConfig
from refimpl.engine.decode_inputs import DecodeInputs, Rows, rows_behind
from refimpl.engine.errors import EngineError
from refimpl.engine.forward_batch import ExtendInputs, pack
from refimpl.engine.future_map import Shapes
from refimpl.engine.graph_runner import Body, DecodeCudaGraphRunner, Outputs
from refimpl.engine.plan import StepPlan
from refimpl.engine.pools import KVPool
from refimpl.engine.workers.base import Resources
from refimpl.engine.workers.target import TargetForward
from refimpl.model.acceptance import Accepted, last_accepted
from refimpl.model.attention import PagedMetadata
from refimpl.model.config import LayerConfig
from refimpl.model.sampling import Drawn, SamplingMode

TOKEN: tuple[tuple[int, ...], torch.dtype] = ((), torch.int64)
"""One token a request, as :class:`DecodeInputs` asks for it."""


def draft_steps(trained: int, config: EngineConfig) -> int:
    """Tokens on a path of drafts: what the weights were trained for, or fewer if so asked.

    Raises:
        EngineError: more than that.
    """
    steps = trained if config.draft_steps is None else config.draft_steps
    if steps > trained:
        raise EngineError(f"draft_steps={steps}: the draft was trained for {trained} steps, ask for at most as many")
    return steps


def draft_pool(resources: Resources, config: LayerConfig, layers: int) -> KVPool:
    """K and V of a draft: as many slots as the target has, so that a token's slot is the same in both."""
    return KVPool(
        resources.kv_pool.num_slots,
        layers,
        config.num_key_value_heads,
        config.head_dim,
        resources.target.dtype,
        resources.graphs.device,
    )


def make_runner(
    resources: Resources, name: str, body: Body, tokens: Shapes, window: int | None = None
) -> DecodeCudaGraphRunner:
    """A runner with a snapshot of its own.

    Args:
        resources: whose ``req_to_token`` is copied.
        name: for messages.
        body: what it captures.
        tokens: what it starts from, by name.
        window: of the target's sliding layers, where the target runs in it.
    """
    graphs = resources.graphs
    inputs = DecodeInputs.allocate(graphs.device, max(graphs.batch_sizes), resources.width, tokens, window)
    return DecodeCudaGraphRunner(name, graphs, inputs, body, resources.req_to_token_pool, resources.swa)


def make_plan(resources: Resources) -> StepPlan | None:
    """Who prepares the verify on the plan stream, if the engine has one."""
    config = resources.config
    if not config.plan_stream:
        return None
    return StepPlan(resources.graphs.device, config.fences.draft_done, resources.streams)


def rows_one_by_one(inputs: DecodeInputs, count: int) -> list[Rows]:
    """The ``count`` rows behind the cache of each request, for a forward each; their positions are ``[bs]``.

    All of them are worked out together: a graph has the kernels of one such step instead of ``count`` times as many.
    """
    device, bs = inputs.seq_lens.device, inputs.batch_size
    positions = inputs.seq_lens + torch.arange(count, device=device)[:, None]
    slots = inputs.page_table.gather(1, positions.t()).long().t().contiguous()
    kv_lens = (positions + 1).int()
    q_starts = torch.arange(bs + 1, dtype=torch.int32, device=device)
    metadata = [PagedMetadata(slots[row], inputs.page_table, kv_lens[row], q_starts, 1) for row in range(count)]
    return [Rows(positions[row], full, None) for row, full in enumerate(metadata)]


def following_tokens(extend: ExtendInputs, first: torch.Tensor) -> torch.Tensor:
    """``[T]`` int64: the token behind each one of the prompts; behind their last, ``first`` ``[bs]``."""
    return extend.input_ids.roll(-1).index_copy(0, extend.last_rows, first)


def stack_drawn(drawn: list[Drawn]) -> Outputs:
    """The drafts of one step after another as ``draft_tokens`` ``[bs, k]``, and what they were drawn from.

    ``draft_probs`` ``[bs, k, V]`` is the very distribution: one computed again would not be unbiased.
    """
    outputs = {"draft_tokens": torch.stack([one.tokens for one in drawn], dim=1)}
    probs = [one.probs for one in drawn if one.probs is not None]
    return {**outputs, "draft_probs": torch.stack(probs, dim=1)} if probs else outputs


def verify_drafts(
    target: TargetForward,
    bonus_tokens: torch.Tensor,
    draft_tokens: torch.Tensor,
    draft_probs: torch.Tensor | None,
    inputs: DecodeInputs,
    mode: SamplingMode,
) -> Outputs:
    """One causal forward of the target over ``[bonus, drafts]``, and how many of the drafts it accepts.

    Args:
        target: with the feature layers of the draft.
        bonus_tokens: ``[bs]`` int64, which the step before left.
        draft_tokens: ``[bs, k]`` int64.
        draft_probs: ``[bs, k, V]`` float32, what they were drawn from; None in mode ``GREEDY``.
        inputs: the snapshot.
        mode: known to the host.

    Returns:
        As :func:`verify_outputs`.
    """
    block = torch.cat([bonus_tokens[:, None], draft_tokens], dim=1)
    logits, features = target.rows(block, rows_behind(inputs, block.shape[1]))
    accepted = target.verify_chain(draft_tokens, draft_probs, logits, inputs, mode)
    assert features is not None, "the draft names its feature layers"
    return verify_outputs(accepted, features, inputs)


def verify_outputs(accepted: Accepted, features: torch.Tensor, inputs: DecodeInputs) -> Outputs:
    """What a verify leaves.

    Args:
        accepted: of ``k`` drafts on a path.
        features: ``[bs, k + 1, n * d]``, of the bonus token and of those drafts.
        inputs: the snapshot.

    Returns:
        ``new_seq_lens``, ``bonus_tokens`` and ``packed`` for the scheduler. For the draft the ``features`` of each row,
        in ``following`` ``[bs, k + 1]`` the token behind it, and in ``num_accepted`` ``[bs]`` the last row that
        counts; tokens of rows behind it mean nothing, but are tokens.
    """
    return {
        "new_seq_lens": inputs.seq_lens + accepted.accept_len,
        "bonus_tokens": last_accepted(accepted),
        "packed": pack(accepted.tokens, accepted.accept_len),
        "features": features,
        "following": accepted.tokens.clamp(min=0),
        "num_accepted": accepted.num_accepted,
    }


def take_rows(rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Rows of each request: ``rows[b, index[b, j]]`` of ``[bs, n, d]`` for ``[bs, m]``, which gives ``[bs, m, d]``."""
    return rows.gather(1, index[..., None].expand(-1, -1, rows.shape[-1]))
