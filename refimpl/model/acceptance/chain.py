"""Verifying a chain of drafts: what comes out is distributed as if the target had written it alone.

Source: Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding" (arXiv 2211.17192);
Chen et al., "Accelerating Large Language Model Decoding with Speculative Sampling" (arXiv 2302.01318).
"""

from __future__ import annotations

import torch

from refimpl.model.acceptance.accepted import PADDING, Accepted, emit
from refimpl.model.sampling import Purpose, SamplingMode, SamplingTensors, probabilities, sample, uniform


def verify_greedy(draft_tokens: torch.Tensor, target_argmax: torch.Tensor) -> Accepted:
    """Accepts drafts as long as each is the token that the target takes.

    Args:
        draft_tokens: ``[bs, k]`` int64; ``draft_tokens[:, j]`` is a guess at what follows row ``j``.
        target_argmax: ``[bs, k+1]`` int64, what the target takes behind the anchor and behind each draft.

    Raises:
        ValueError: Shapes that do not fit.

    Order:
        Queues operators on the current stream; the host does not block.

    Example:
        >>> verify_greedy(torch.tensor([[5, 6, 7]]), torch.tensor([[5, 6, 9, 4]])).tokens.tolist()
        [[5, 6, 9, -1]]
    """
    _check_rows("target_argmax", target_argmax, draft_tokens)
    num_accepted = (draft_tokens == target_argmax[:, :-1]).cumprod(-1).sum(-1)
    place = torch.arange(target_argmax.shape[1], device=draft_tokens.device)
    tokens = torch.where(place <= num_accepted[:, None], target_argmax, PADDING)
    return Accepted(num_accepted, num_accepted + 1, tokens)


def verify_rejection(
    draft_tokens: torch.Tensor,
    q: torch.Tensor | None,
    p: torch.Tensor,
    u_accept: torch.Tensor,
    u_final: torch.Tensor,
) -> Accepted:
    """Accepts each draft with probability min(1, p/q); behind the accepted ones draws from what q left of p.

    Why both: accepting alone emits a token with min(p, q), too seldom where p is above q. Drawing after a rejection
    from max(0, p - q), renormalised, makes up exactly for that. It holds for any q, if the draft was drawn from it.
    Where the temperature is 0, p and q are on one token, and what comes out is what ``verify_greedy`` gives.

    Args:
        draft_tokens: ``[bs, k]`` int64.
        q: ``[bs, k, V]`` float32, the distribution that each draft was drawn from: that very tensor, not one that was
            computed again. None for drafts that were not drawn (an argmax): each then has all of q. That is right for
            a drawn one too, but accepts it less often.
        p: ``[bs, k+1, V]`` float32, the target's distribution behind the anchor and behind each draft.
        u_accept: ``[bs, k]`` float32 in [0, 1).
        u_final: ``[bs]`` float32 in [0, 1). No draw may have decided anything else.

    Raises:
        ValueError: Shapes that do not fit.

    Order:
        Queues operators on the current stream; the host does not block.
    """
    _check_rows("p", p, draft_tokens)
    if q is not None and q.shape != (*draft_tokens.shape, p.shape[-1]):
        raise ValueError(f"q is {list(q.shape)}: give {[*draft_tokens.shape, p.shape[-1]]}, a row for each draft")
    p_of_draft = p[:, :-1].gather(-1, draft_tokens[..., None]).squeeze(-1)
    threshold = u_accept if q is None else u_accept * q.gather(-1, draft_tokens[..., None]).squeeze(-1)
    num_accepted = (threshold < p_of_draft).cumprod(-1).sum(-1)
    p_final = _row(p, num_accepted)
    left = (p_final - _rejected(draft_tokens, q, num_accepted, p.shape[-1])).clamp(min=0)
    # Where p and q differ by rounding alone, a rejection can leave nothing.
    left = torch.where(left.sum(-1, keepdim=True) > 0, left, p_final)
    return emit(draft_tokens, num_accepted, sample(left, u_final))


def verify_chain(
    draft_tokens: torch.Tensor,
    q: torch.Tensor | None,
    logits: torch.Tensor,
    seq_lens: torch.Tensor,
    tensors: SamplingTensors,
    mode: SamplingMode,
) -> Accepted:
    """Verifies a chain as its batch needs it: greedily, or by rejection with draws of its own.

    Args:
        draft_tokens: ``[bs, k]`` int64.
        q: what they were drawn from, ``[bs, k, V]``; unused in mode ``GREEDY``; see ``verify_rejection``.
        logits: ``[bs, k+1, V]``, the target's, behind the anchor and behind each draft.
        seq_lens: ``[bs]``, committed lengths before this step: the place of the anchor.
        tensors: of the ``bs`` requests.
        mode: at least what the requests need.

    Order:
        Queues operators on the current stream; the host does not block. ``seq_lens`` is read when they execute.
    """
    if mode is SamplingMode.GREEDY:
        return verify_greedy(draft_tokens, logits.argmax(-1))
    places = seq_lens[:, None] + torch.arange(1, logits.shape[1], device=logits.device)
    # A draft behind a rejection decides nothing, so its draw is free when the next step comes to that place again.
    u_accept = uniform(tensors.seed, places, Purpose.ACCEPT)
    # Where the last token lands is known too late; the anchor's place is as good, since each step has another.
    u_final = uniform(tensors.seed, seq_lens, Purpose.FINAL)
    return verify_rejection(draft_tokens, q, probabilities(logits, tensors, mode), u_accept, u_final)


def _rejected(
    draft_tokens: torch.Tensor, q: torch.Tensor | None, num_accepted: torch.Tensor, vocabulary: int
) -> torch.Tensor:
    """``[bs, V]``: the q of the draft that was rejected; zeros where all were accepted."""
    num_drafts = draft_tokens.shape[1]
    rejected = num_accepted.clamp(max=num_drafts - 1)
    any_rejected = (num_accepted < num_drafts)[:, None]
    if q is not None:
        return _row(q, rejected) * any_rejected
    token = draft_tokens.gather(1, rejected[:, None])
    return ((torch.arange(vocabulary, device=token.device) == token) & any_rejected).to(torch.float32)


def _row(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """``table[b, index[b]]`` for each ``b``."""
    return table.gather(1, index[:, None, None].expand(-1, 1, table.shape[-1])).squeeze(1)


def _check_rows(name: str, rows: torch.Tensor, draft_tokens: torch.Tensor) -> None:
    batch, num_drafts = draft_tokens.shape
    if num_drafts == 0 or rows.shape[:2] != (batch, num_drafts + 1):
        raise ValueError(
            f"{name} has {list(rows.shape[:2])} rows for {list(draft_tokens.shape)} drafts: "
            f"give at least one draft, and a row for the anchor and for each draft"
        )
