"""Drawing tokens: the inverse of the cumulative distribution, at a number between 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from refimpl.model.sampling.probabilities import SamplingMode, SamplingTensors, probabilities
from refimpl.model.sampling.uniform import Purpose, uniform

# Probabilities are rounded up to multiples of this. Whole numbers up to 2^53 add without error in float64, so the
# running sum is exact, in whatever order a device adds. It grows at possible tokens only, hence no other is drawn;
# and for the same draw every device draws the same token.
_QUANTUM_BITS = 38


@dataclass(frozen=True)
class Drawn:
    """Tokens and what they were drawn from.

    Args:
        tokens: ``[...]`` int64.
        probs: ``[..., V]`` float32, the distribution of each; None where nothing was drawn, in mode ``GREEDY``.
    """

    tokens: torch.Tensor
    probs: torch.Tensor | None


def sample(probs: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Draws a token from each row; never one that has no probability.

    Args:
        probs: ``[..., V]`` float32, 0 or more, each row with something above 0; need not sum to 1.
        u: ``[...]`` float32 from 0 up to but not including 1, independent of all that led to ``probs``.

    Returns:
        ``[...]`` int64. A row's distribution is off by at most V·2^-38, and by the 2^-24 between two values of ``u``.

    Order:
        Queues operators on the current stream; the host does not block.

    Example:
        >>> sample(torch.tensor([[0.5, 0.0, 0.5]] * 2), torch.tensor([0.49, 0.5])).tolist()
        [0, 2]
    """
    quanta = (probs * 2.0**_QUANTUM_BITS).ceil()
    cumulative = quanta.cumsum(-1, dtype=torch.float64)
    return (cumulative <= cumulative[..., -1:] * u.unsqueeze(-1)).sum(-1)


def draw(
    logits: torch.Tensor,
    tensors: SamplingTensors,
    mode: SamplingMode,
    positions: torch.Tensor,
    purpose: Purpose,
) -> Drawn:
    """Chooses the token of each row of logits as its request wants it chosen.

    Args:
        logits: ``[bs, ..., V]``.
        tensors: of the ``bs`` requests.
        mode: at least what the requests need.
        positions: ``[bs, ...]``, the place in the sequence of the token that is drawn: one behind the row that its
            logits come from.
        purpose: ``TARGET`` for the target's token, ``DRAFT`` for a draft's.

    Order:
        Queues operators on the current stream; the host does not block.
    """
    if mode is SamplingMode.GREEDY:
        return Drawn(logits.argmax(-1), None)
    probs = probabilities(logits, tensors, mode)
    return Drawn(sample(probs, uniform(tensors.seed, positions, purpose)), probs)
