"""DFLASH's loss: many anchors a row, each with its block of masks, all of them in one forward."""

import torch
from torch import Tensor, nn

from refimpl.model.dflash import DFlash
from refimpl.model.qwen3 import Qwen3
from refimpl.train.distill import cross_entropy, teach

DOUBT = 0.5
"""Share of a slot's chance that is taken for granted, so that late slots learn before early ones are sure."""
FIRST_ANCHOR = 8
"""An anchor with fewer tokens before it is no case that is served."""


class BlockAttention:
    """What a block sees: the context strictly before its anchor, and all of itself, but no other block.

    Args:
        context: K and V of the row's tokens for each layer, ``[b, S, kv_heads, hd]``.
        visible: ``[b, 1, N * B, S + N * B]`` bool (`block_mask`).
    """

    def __init__(self, context: list[tuple[Tensor, Tensor]], visible: Tensor) -> None:
        """Holds both."""
        self._context, self._visible = context, visible

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """All blocks of a row at once: ``q`` ``[b, N * B, heads, hd]``; as `AttentionBackend`."""
        before_k, before_v = self._context[layer]
        keys, values = torch.cat([before_k.to(k.dtype), k], 1), torch.cat([before_v.to(v.dtype), v], 1)
        groups = q.shape[2] // k.shape[2]
        out = nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2),
            keys.repeat_interleave(groups, 2).transpose(1, 2),
            values.repeat_interleave(groups, 2).transpose(1, 2),
            attn_mask=self._visible,
        )
        return out.transpose(1, 2)


def block_mask(anchors: Tensor, context_length: int, block_size: int) -> Tensor:
    """Which of ``[context, blocks]`` each block slot sees, for ``anchors`` ``[b, N]``: ``[b, 1, N * B, S + N * B]``."""
    rows, blocks = anchors.shape
    owner = torch.arange(blocks, device=anchors.device).repeat_interleave(block_size)
    own = (owner[:, None] == owner[None, :]).expand(rows, -1, -1)
    before = torch.arange(context_length, device=anchors.device) < anchors[:, :, None]
    visible: Tensor = torch.cat([before.repeat_interleave(block_size, 1), own], -1)[:, None]
    return visible


def block_logits(draft: DFlash, features: Tensor, tokens: Tensor, anchors: Tensor) -> Tensor:
    """Logits of every block's slots, ``[b, N, B, V]``: slot k of an anchor at n scores the token of position n + k.

    Args:
        draft: the draft.
        features: of the target ``[b, S, n * d]``.
        tokens: ``[b, S]``.
        anchors: positions ``[b, N]``.
    """
    rows, length = tokens.shape
    size = draft.config.block_size
    context = draft.context(features)
    at = torch.arange(length, device=tokens.device).expand(rows, -1)
    context_kv = [draft.context_kv(layer, context, at) for layer in range(draft.config.num_hidden_layers)]
    positions = (anchors[:, :, None] + torch.arange(size, device=tokens.device)).flatten(1)
    blocks = draft.block(tokens.gather(1, anchors)).flatten(1)
    attention = BlockAttention(context_kv, block_mask(anchors, length, size))
    logits: Tensor = draft.logits(draft(blocks, positions, attention)).unflatten(1, (-1, size))
    return logits


def draw_anchors(rows: int, length: int, block_size: int, anchors: int, device: torch.device) -> Tensor:
    """Distinct anchors with a whole block of text after each, ``[rows, anchors]``."""
    choices = length - block_size + 1 - FIRST_ANCHOR
    if choices < anchors:
        raise ValueError(f"rows of {length} tokens have room for {choices} anchors, not {anchors}: take fewer")
    chosen: Tensor = torch.rand(rows, choices, device=device).topk(anchors, dim=1).indices + FIRST_ANCHOR
    return chosen


def slot_weights(chance: Tensor) -> Tensor:
    """How much each slot's chance of being right adds to the length that is accepted.

    The mean length is the sum over slots of the chance that all up to it are right; a slot's weight is the part of
    that sum that it is a factor of. Slots behind an unlikely one weigh little, in a sure text the late ones count.

    Args:
        chance: ``[..., slots]``, the draft's probability of the token in the text, without gradient.

    Returns:
        ``[..., slots]``.

    Source:
        D-PACE, in training code for DFLASH drafts: suffix sums of prefix products of half-trusted chances.
    """
    reached = (DOUBT + (1 - DOUBT) * chance).cumprod(-1)
    return reached.flip(-1).cumsum(-1).flip(-1)


def loss(draft: DFlash, target: Qwen3, tokens: Tensor, anchors: Tensor, hard_share: float) -> Tensor:
    """Mean over anchors and slots, weighed by `slot_weights`; ``tokens`` ``[b, S]``, ``anchors`` ``[b, N]``."""
    size = draft.config.block_size
    teacher, features = teach(target, tokens, draft.config.feature_layers)
    slots = torch.arange(1, size, device=tokens.device)
    at = (anchors[:, :, None] + slots).flatten(1)
    labels = tokens.gather(1, at)
    rows = torch.arange(tokens.shape[0], device=tokens.device)[:, None]
    logits = block_logits(draft, features, tokens, anchors)[:, :, 1:].flatten(1, 2)
    each = cross_entropy(logits, teacher[rows, at - 1], labels, hard_share).unflatten(1, (-1, size - 1))
    chance = logits.detach().float().softmax(-1).gather(-1, labels[..., None]).squeeze(-1)
    weights = slot_weights(chance.unflatten(1, (-1, size - 1)))
    mean: Tensor = (each * weights).sum() / weights.sum()
    return mean
