"""Drafting as it is served, written a second time and plainly: no cache, everything computed anew for each token.

Training runs all origins of a row at once; here a draft sees what a served draft sees, token by token. Where the two
disagree a draft is trained for another job than it does, so a test holds them equal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from refimpl.model.attention import DenseAttention
from refimpl.model.dflash import DFlash
from refimpl.model.eagle import Eagle3
from refimpl.model.mtp import MultiLayerEagle
from refimpl.model.sampling import Drawn
from refimpl.model.weights_io import Draft

Choose = Callable[[Tensor, Tensor], Drawn]
"""Logits ``[b, V]`` and the positions ``[b]`` of the tokens that they score, to the tokens chosen."""


@dataclass(frozen=True)
class Proposal:
    """``k`` drafts of each row.

    Args:
        tokens: ``[b, k]`` int64.
        probs: ``[b, k, V]`` fp32, what each was drawn from; None for greedy ones.
        logits: ``[b, k, V]``, the draft's scores.
    """

    tokens: Tensor
    probs: Tensor | None
    logits: Tensor


class Drafter(Protocol):
    """Guesses what follows an anchor."""

    num_drafts: int

    def propose(self, tokens: Tensor, features: Tensor, anchors: Tensor, choose: Choose) -> Proposal:
        """Drafts.

        Args:
            tokens: ``[b, S]`` int64; what lies behind an anchor is not looked at; room for the drafts is left there.
            features: of the target ``[b, S, n * d]``, valid before each anchor.
            anchors: ``[b]``, the position of the last token of each row.
            choose: takes a token from a row of logits.
        """
        ...


def drafter(draft: Draft) -> Drafter:
    """The recipe of a draft's kind."""
    match draft:
        case Eagle3():
            return ChainDrafter(draft)
        case MultiLayerEagle():
            return HeadsDrafter(draft)
        case DFlash():
            return BlockDrafter(draft)


class ChainDrafter:
    """EAGLE-3: one draft a forward, each on the hidden state that the one before returned."""

    def __init__(self, draft: Eagle3) -> None:
        """Holds the head."""
        self._draft, self.num_drafts = draft, draft.config.num_steps

    def propose(self, tokens: Tensor, features: Tensor, anchors: Tensor, choose: Choose) -> Proposal:
        """As `Drafter`."""
        tokens, row = tokens.clone(), torch.arange(len(tokens), device=tokens.device)
        hidden = self._draft.fuse(features)
        positions = torch.arange(tokens.shape[1] - 1, device=tokens.device).expand(len(tokens), -1)
        drawn, scores = [], []
        for step in range(self.num_drafts):
            last = anchors - 1 + step  # the origin whose next token is the newest one
            out = self._draft(tokens[:, 1:], hidden[:, :-1], positions, DenseAttention())
            scores.append(self._draft.logits(out[row, last]))
            drawn.append(choose(scores[-1], last + 2))
            tokens[row, last + 2] = drawn[-1].tokens
            hidden = hidden.clone()
            hidden[row, last + 1] = out[row, last].to(hidden.dtype)
        return _proposal(drawn, scores)


class HeadsDrafter:
    """Multi-layer EAGLE: one draft a head, all heads at the origin before the anchor."""

    def __init__(self, draft: MultiLayerEagle) -> None:
        """Holds the heads."""
        self._draft, self.num_drafts = draft, draft.config.num_steps

    def propose(self, tokens: Tensor, features: Tensor, anchors: Tensor, choose: Choose) -> Proposal:
        """As `Drafter`."""
        tokens, row = tokens.clone(), torch.arange(len(tokens), device=tokens.device)
        hidden = self._draft.fuse(features)
        drawn, scores = [], []
        for step in range(self.num_drafts):
            inputs = tokens[:, 1 + step :]
            positions = torch.arange(inputs.shape[1], device=tokens.device).expand(len(tokens), -1)
            hidden = self._draft(step, inputs, hidden[:, : inputs.shape[1]], positions, DenseAttention())
            scores.append(self._draft.logits(step, hidden[row, anchors - 1]))
            drawn.append(choose(scores[-1], anchors + 1 + step))
            tokens[row, anchors + 1 + step] = drawn[-1].tokens
        return _proposal(drawn, scores)


class BlockDrafter:
    """DFLASH: all drafts in one forward of a block of masks."""

    def __init__(self, draft: DFlash) -> None:
        """Holds the draft."""
        self._draft, self.num_drafts = draft, draft.config.block_size - 1

    def propose(self, tokens: Tensor, features: Tensor, anchors: Tensor, choose: Choose) -> Proposal:
        """As `Drafter`."""
        draft, (rows, length) = self._draft, tokens.shape
        row, size = torch.arange(rows, device=tokens.device), draft.config.block_size
        at = torch.arange(length, device=tokens.device).expand(rows, -1)
        context = draft.context(features)
        block = torch.arange(size, device=tokens.device)
        visible = torch.cat([at < anchors[:, None], torch.ones(rows, size, dtype=torch.bool, device=tokens.device)], 1)
        attention = _ContextThenBlock(draft, context, at, visible)
        hidden = draft(draft.block(tokens[row, anchors]), anchors[:, None] + block, attention)
        scores = list(draft.logits(hidden)[:, 1:].unbind(1))
        drawn = [choose(each, anchors + 1 + slot) for slot, each in enumerate(scores)]
        return _proposal(drawn, scores)


class _ContextThenBlock:
    """Puts a layer's K and V of the context before those of the block; the block sees both."""

    def __init__(self, draft: DFlash, context: Tensor, at: Tensor, visible: Tensor) -> None:
        self._draft, self._context, self._at, self._visible = draft, context, at, visible

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        before_k, before_v = self._draft.context_kv(layer, self._context, self._at)
        mask = self._visible[:, None, None, :].expand(-1, 1, q.shape[1], -1)
        attention = DenseAttention(mask)
        return attention(layer, q, torch.cat([before_k, k], 1), torch.cat([before_v, v], 1))


def _proposal(drawn: list[Drawn], scores: list[Tensor]) -> Proposal:
    probs = [each.probs for each in drawn if each.probs is not None]
    return Proposal(
        torch.stack([each.tokens for each in drawn], 1),
        torch.stack(probs, 1) if probs else None,
        torch.stack(scores, 1),
    )
