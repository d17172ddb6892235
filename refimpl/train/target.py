"""The target's loss: the next token of the corpus."""

import torch
from torch import Tensor, nn

from refimpl.model.attention import DenseAttention
from refimpl.model.qwen3 import Qwen3


def next_token_loss(target: Qwen3, tokens: Tensor) -> Tensor:
    """Mean cross-entropy in nats of each token after the first of its row, ``tokens`` being ``[b, t]``."""
    inputs = tokens[:, :-1]
    positions = torch.arange(inputs.shape[1], device=tokens.device).expand_as(inputs)
    hidden, _ = target(inputs, positions, DenseAttention())
    return nn.functional.cross_entropy(target.logits(hidden).flatten(0, 1).float(), tokens[:, 1:].flatten())
