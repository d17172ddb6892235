"""What drafts are taught: the target's distribution, and the token that followed."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from refimpl.model.attention import DenseAttention
from refimpl.model.qwen3 import Qwen3


def half_precision(device: torch.device) -> AbstractContextManager[None]:
    """Matrix products in bf16 on a GPU, weights and sums in fp32; on a CPU nothing changes, as bf16 is slower there."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


@torch.no_grad()
def teach(target: Qwen3, tokens: Tensor, feature_layers: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The target's logits ``[b, t, V]`` and features ``[b, t, n * d]`` over ``tokens`` ``[b, t]``, without gradient."""
    positions = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    hidden, features = target(tokens, positions, DenseAttention(), feature_layers)
    assert features is not None, "feature layers were named"
    return target.logits(hidden), features


def cross_entropy(logits: Tensor, teacher_logits: Tensor, tokens: Tensor, hard_share: float) -> Tensor:
    """Cross-entropy against the target's distribution, mixed with that against the token in the text.

    Over text that was sampled from the target at temperature 1 the two have one expectation, and the first has less
    variance. Over greedy text the second sharpens the draft where the target is to be followed exactly.

    Args:
        logits: the draft's ``[..., V]``.
        teacher_logits: the target's for the same token ``[..., V]``.
        tokens: that token, ``[...]``.
        hard_share: weight of the second.

    Returns:
        ``[...]`` fp32.
    """
    log_q = logits.float().log_softmax(-1)
    hard = -log_q.gather(-1, tokens[..., None]).squeeze(-1)
    if hard_share == 1:
        return hard
    soft = -(teacher_logits.float().softmax(-1) * log_q).sum(-1)
    return (1 - hard_share) * soft + hard_share * hard
