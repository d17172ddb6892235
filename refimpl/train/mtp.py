"""The multi-layer EAGLE's loss: all heads jointly, each on the hidden state of the head before it."""

import torch
from torch import Tensor

from refimpl.model.attention import DenseAttention
from refimpl.model.mtp import MultiLayerEagle
from refimpl.model.qwen3 import Qwen3
from refimpl.train.distill import cross_entropy, teach
from refimpl.train.eagle import LATER_STEP_WEIGHT


def chained_logits(heads: MultiLayerEagle, features: Tensor, tokens: Tensor) -> list[Tensor]:
    """Logits of every head at every origin, the tokens of the text standing for accepted drafts.

    Args:
        heads: the draft.
        features: of the target ``[b, S, n * d]``.
        tokens: ``[b, S]``.

    Returns:
        A tensor ``[b, S - num_steps - 1, V]`` a head: head i at origin t scores the token of position t + 2 + i.
    """
    steps = heads.config.num_steps
    origins = tokens.shape[1] - steps - 1
    hidden = heads.fuse(features[:, :origins])
    positions = torch.arange(origins, device=tokens.device).expand(tokens.shape[0], -1)
    attention, logits = DenseAttention(), []
    for step in range(steps):
        hidden = heads(step, tokens[:, 1 + step : 1 + step + origins], hidden, positions, attention)
        logits.append(heads.logits(step, hidden))
    return logits


def loss(heads: MultiLayerEagle, target: Qwen3, tokens: Tensor, hard_share: float) -> Tensor:
    """Mean over origins and heads, later heads weighing less; ``tokens`` is ``[b, S]``."""
    teacher, features = teach(target, tokens, heads.config.feature_layers)
    origins = tokens.shape[1] - heads.config.num_steps - 1
    total, weights = torch.zeros((), device=tokens.device), 0.0
    for step, logits in enumerate(chained_logits(heads, features, tokens)):
        weight, at = LATER_STEP_WEIGHT**step, 1 + step
        each = cross_entropy(logits, teacher[:, at : at + origins], tokens[:, at + 1 : at + 1 + origins], hard_share)
        total, weights = total + weight * each.mean(), weights + weight
    return total / weights
