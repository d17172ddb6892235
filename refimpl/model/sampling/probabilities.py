"""From logits to the distribution that a request asked for: temperature, then top-k, then top-p."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import torch


class SamplingMode(StrEnum):
    """What a whole batch needs; the host knows it, so it chooses what is captured.

    ``GREEDY``: every request takes its likeliest token, and no probability is computed. ``SAMPLED``: some have a
    temperature. ``FILTERED``: some have a top-k or a top-p too, which costs a sort of the vocabulary.
    """

    GREEDY = "greedy"
    SAMPLED = "sampled"
    FILTERED = "filtered"


@dataclass(frozen=True)
class SamplingTensors:
    """The sampling parameters of a batch, on the device, ``[bs]`` each.

    Args:
        temperature: float32; 0 takes the likeliest token.
        top_k: int32; choose among this many likeliest tokens; 0, or more than there are, for all.
        top_p: float32 above 0; then among the likeliest that hold this much probability; 1 for all.
        seed: int64; the request's draws depend on it.

    Raises:
        ValueError: Shapes or types that do not fit.
    """

    temperature: torch.Tensor
    top_k: torch.Tensor
    top_p: torch.Tensor
    seed: torch.Tensor

    def __post_init__(self) -> None:
        wanted = {"temperature": torch.float32, "top_k": torch.int32, "top_p": torch.float32, "seed": torch.int64}
        for name, dtype in wanted.items():
            given: torch.Tensor = getattr(self, name)
            if given.dtype != dtype or given.shape != self.seed.shape or given.dim() != 1:
                raise ValueError(
                    f"{name} is {given.dtype} {list(given.shape)}: give {dtype} of one number a request, as seed has"
                )


def probabilities(logits: torch.Tensor, tensors: SamplingTensors, mode: SamplingMode) -> torch.Tensor:
    """The distribution that each row of logits stands for; where the temperature is 0, all on the likeliest token.

    Greedy and sampled requests thus mix in one batch: what is drawn from such a row is its argmax, whatever the draw.

    Top-p measures the distribution that top-k left, renormalised. Ties: what is as likely as the last token kept is
    kept, by top-k and by top-p, so the order of equals in a sort changes nothing. Between equally likely tokens a
    temperature of 0 takes the one with the lowest id.

    Args:
        logits: ``[bs, ..., V]``, any floating type.
        tensors: of the ``bs`` requests.
        mode: at least what the requests need.

    Returns:
        float32 like ``logits``; rows sum to 1, up to rounding.

    Order:
        Queues operators on the current stream; the host does not block.
    """
    likeliest = logits.argmax(-1, keepdim=True)
    one_hot = torch.arange(logits.shape[-1], device=logits.device) == likeliest
    if mode is SamplingMode.GREEDY:
        return one_hot.to(torch.float32)
    temperature = _by_row(tensors.temperature, logits)
    greedy = temperature == 0
    probs = torch.softmax(logits / (temperature + greedy), dim=-1, dtype=torch.float32)
    if mode is SamplingMode.FILTERED:
        probs = _filtered(probs, tensors)
    return torch.where(greedy, one_hot, probs)


def _filtered(probs: torch.Tensor, tensors: SamplingTensors) -> torch.Tensor:
    """Top-k, then top-p, as the least probability that is kept of each row."""
    vocabulary = probs.shape[-1]
    top_k, top_p = _by_row(tensors.top_k, probs), _by_row(tensors.top_p, probs)
    descending = probs.sort(-1, descending=True).values
    k = torch.where(top_k == 0, vocabulary, top_k).clamp(max=vocabulary).long()
    kth = descending.gather(-1, _for_each(k - 1, descending))
    descending = torch.where(descending >= kth, descending, 0.0)
    # float64, so that the sum has no order and the tail of a large vocabulary is not lost in it.
    cumulative = descending.cumsum(-1, dtype=torch.float64)
    in_nucleus = cumulative - descending < top_p * cumulative[..., -1:]
    nucleus = in_nucleus.sum(-1, keepdim=True).clamp(min=1)
    least = torch.where(top_p < 1, descending.gather(-1, nucleus - 1), 0.0)
    kept = torch.where(probs >= torch.maximum(kth, least), probs, 0.0)
    # A row without a filter must not depend on whether another request has one: not even by a rounding.
    whole = (k == vocabulary) & (top_p >= 1)
    return kept / torch.where(whole, 1.0, kept.sum(-1, keepdim=True))


def _by_row(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """``[bs]`` as ``[bs, 1, ..., 1]``."""
    return values.view(-1, *[1] * (like.dim() - 1))


def _for_each(index: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """``[bs, 1, ..., 1]`` as ``[bs, ..., 1]``, an index for each row of ``like``."""
    return index.expand(*like.shape[:-1], 1)
