"""EAGLE-3's loss: the head is unrolled over its own outputs, as it will run (training-time test)."""

import torch
from torch import Tensor

from refimpl.model.eagle import Eagle3
from refimpl.model.qwen3 import Qwen3
from refimpl.train.distill import cross_entropy, teach

LATER_STEP_WEIGHT = 0.8
"""Each step of the chain counts this much of the one before: it is reached only if that one was right."""


class UnrolledAttention:
    """What an origin sees at step k of the unrolled head: the step-0 entries up to itself, and its own later ones.

    That is what a chain sees when it serves: entries of committed tokens, then its own drafts. An origin's entry of
    step j stands at position origin + j, where the serving chain has it.
    """

    def __init__(self) -> None:
        """Starts at step 0."""
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """One step: ``q`` ``[b, t, heads, hd]``, ``k`` and ``v`` ``[b, t, kv_heads, hd]``; as `AttentionBackend`."""
        self._keys.append(k)
        self._values.append(v)
        kv_heads, rows = k.shape[2], q.shape[1]
        grouped = q.unflatten(2, (kv_heads, -1)) * q.shape[-1] ** -0.5
        committed = torch.einsum("bikgd,bjkd->bkgij", grouped, self._keys[0])
        visible = torch.ones(rows, rows, dtype=torch.bool, device=q.device).tril()
        scores = [committed.float().masked_fill(~visible, float("-inf"))]
        for own in self._keys[1:]:
            diagonal = torch.einsum("bikgd,bikd->bkgi", grouped, own)
            scores.append(diagonal.float()[..., None])
        weights = torch.cat(scores, -1).softmax(-1)
        out = torch.einsum("bkgij,bjkd->bikgd", weights[..., :rows], self._values[0])
        for step, own in enumerate(self._values[1:]):
            out = out + weights[..., rows + step].permute(0, 3, 1, 2)[..., None] * own[:, :, :, None]
        return out.flatten(2, 3)


def unrolled_logits(head: Eagle3, features: Tensor, tokens: Tensor, steps: int) -> list[Tensor]:
    """Logits of every step at every origin, the tokens of the text standing for accepted drafts.

    Args:
        head: the draft.
        features: of the target ``[b, S, n * d]``.
        tokens: ``[b, S]``.
        steps: how far the chain goes.

    Returns:
        ``steps`` tensors ``[b, S - steps - 1, V]``: step k at origin t scores the token of position t + 2 + k.
    """
    origins = tokens.shape[1] - steps - 1
    hidden = head.fuse(features[:, :origins])
    positions = torch.arange(origins, device=tokens.device).expand(tokens.shape[0], -1)
    attention, logits = UnrolledAttention(), []
    for step in range(steps):
        hidden = head(tokens[:, 1 + step : 1 + step + origins], hidden, positions + step, attention)
        logits.append(head.logits(hidden))
    return logits


def loss(head: Eagle3, target: Qwen3, tokens: Tensor, hard_share: float) -> Tensor:
    """Mean over origins and steps, later steps weighing less; ``tokens`` is ``[b, S]``."""
    steps = head.config.num_steps
    teacher, features = teach(target, tokens, head.config.feature_layers)
    origins = tokens.shape[1] - steps - 1
    total, weights = torch.zeros((), device=tokens.device), 0.0
    for step, logits in enumerate(unrolled_logits(head, features, tokens, steps)):
        weight, at = LATER_STEP_WEIGHT**step, 1 + step
        each = cross_entropy(logits, teacher[:, at : at + origins], tokens[:, at + 1 : at + 1 + origins], hard_share)
        total, weights = total + weight * each.mean(), weights + weight
    return total / weights
