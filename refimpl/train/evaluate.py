"""How far drafts are believed: decoding as it is served, with real rejection sampling, by domain and temperature."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from refimpl.model.acceptance import verify_chain
from refimpl.model.attention import DenseAttention
from refimpl.model.qwen3 import Qwen3
from refimpl.model.sampling import Drawn, Purpose, SamplingMode, SamplingTensors, draw
from refimpl.train.propose import Drafter, Proposal

NGRAM = 8
"""A text that loops has few different runs of this many tokens."""


@dataclass(frozen=True)
class Evaluation:
    """What is decoded.

    Args:
        prompts: of each domain.
        prompt_tokens: length of each, from held-out text.
        new_tokens: written behind each, at least; the last verify may write a few more.
        temperatures: each is a run of its own.
    """

    prompts: int
    prompt_tokens: int
    new_tokens: int
    temperatures: tuple[float, ...] = (0.0, 0.7, 1.0)


@dataclass(frozen=True)
class Decoded:
    """What came out.

    Args:
        tokens: ``[b, S]`` int64.
        ends: ``[b]``, how many of them are text.
        counts: ``[b, k + 2]`` int64: verifies of each row by accept_len, which runs from 1 to ``k + 1``.
    """

    tokens: Tensor
    ends: Tensor
    counts: Tensor


@torch.no_grad()
def decode(target: Qwen3, drafter: Drafter, prompts: Tensor, layers: Sequence[int], new: int, heat: float) -> Decoded:
    """Speculative decoding without any cache: draft, verify, accept, until each row has `new` tokens more.

    Args:
        target: the model.
        drafter: what guesses for it.
        prompts: ``[b, p]`` int64.
        layers: the features that the drafter lives on.
        new: tokens to write.
        heat: the temperature.
    """
    rows, start = prompts.shape
    drafts = drafter.num_drafts
    row = torch.arange(rows, device=prompts.device)
    sampling, mode = _sampling(rows, heat, prompts.device)

    def choose(logits: Tensor, positions: Tensor) -> Drawn:
        return draw(logits, sampling, mode, positions, Purpose.DRAFT)

    tokens = nn.functional.pad(prompts, (0, new + 2 * drafts + 2))
    counts = torch.zeros(rows, drafts + 2, dtype=torch.int64, device=prompts.device)
    hidden, features = _run(target, tokens[:, :start], layers)
    tokens[:, start] = draw(
        target.logits(hidden[:, -1]), sampling, mode, torch.full_like(row, start), Purpose.TARGET
    ).tokens
    anchors = torch.full_like(row, start)
    while bool((unfinished := anchors < start + new).any()):
        width = int(anchors.max()) + drafts + 2
        features = nn.functional.pad(features, (0, 0, 0, width - features.shape[1]))
        proposal = drafter.propose(tokens[:, :width], features, anchors, choose)
        place = anchors[:, None] + torch.arange(drafts + 1, device=tokens.device)
        tokens[row[:, None], place[:, 1:]] = proposal.tokens
        hidden, features = _run(target, tokens[:, :width], layers)
        logits = target.logits(hidden[row[:, None], place])
        accepted = verify_chain(proposal.tokens, proposal.probs, logits, anchors, sampling, mode)
        last = accepted.tokens[row, accepted.num_accepted]
        tokens[row, anchors + accepted.accept_len] = last
        counts[row, accepted.accept_len] += unfinished
        anchors = torch.where(unfinished, anchors + accepted.accept_len, anchors)
    return Decoded(tokens, anchors, counts)


@torch.no_grad()
def forced_logits(target: Qwen3, drafter: Drafter, tokens: Tensor, layers: Sequence[int], anchors: Tensor) -> Proposal:
    """What a drafter says behind given anchors when the text itself decides which drafts it made."""
    _, features = _run(target, tokens, layers)

    def choose(logits: Tensor, positions: Tensor) -> Drawn:
        return Drawn(tokens.gather(1, positions[:, None]).squeeze(1), None)

    return drafter.propose(tokens, features, anchors, choose)


def acceptance(counts: Tensor) -> dict[str, Any]:
    """Figures of ``[rows, k + 2]`` verifies by accept_len: the mean, each draft's chance, the histogram."""
    histogram = counts.sum(0)[1:].tolist()  # by accept_len - 1, the accepted drafts
    verifies = sum(histogram)
    reached = [sum(histogram[draft:]) for draft in range(len(histogram))]
    chances = [after / before for before, after in pairwise(reached) if before]
    return {
        "verifies": verifies,
        "accept_len": round(sum(length * n for length, n in enumerate(histogram, 1)) / max(1, verifies), 4),
        "conditional_acceptance": [round(chance, 4) for chance in chances],
        "histogram": histogram,
    }


def unique_ngrams(rows: Sequence[Sequence[int]]) -> dict[str, float]:
    """Share of different runs of eight tokens: within a row, on average, and among all rows together."""
    runs = [[tuple(row[at : at + NGRAM]) for at in range(len(row) - NGRAM + 1)] for row in rows]
    within = [len(set(each)) / len(each) for each in runs if each]
    every = [run for each in runs for run in each]
    return {
        "within_a_text": round(sum(within) / max(1, len(within)), 4),
        "among_all": round(len(set(every)) / max(1, len(every)), 4),
    }


@torch.no_grad()
def held_out_loss(target: Qwen3, tokens: Tensor, bytes_per_token: float) -> dict[str, float]:
    """The target's loss over ``[b, t]`` held-out tokens, in nats a token and bits a byte."""
    total = 0.0
    for rows in tokens.split(16):
        logits = target.logits(_run(target, rows[:, :-1], ())[0])
        total += nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), rows[:, 1:].flatten(), reduction="sum"
        ).item()
    nats = total / tokens[:, 1:].numel()
    return {"nats_per_token": round(nats, 4), "bits_per_byte": round(nats / math.log(2) / bytes_per_token, 4)}


def _run(target: Qwen3, tokens: Tensor, layers: Sequence[int]) -> tuple[Tensor, Tensor]:
    positions = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    hidden, features = target(tokens, positions, DenseAttention(), layers)
    return hidden, hidden if features is None else features


def _sampling(rows: int, heat: float, device: torch.device) -> tuple[SamplingTensors, SamplingMode]:
    tensors = SamplingTensors(
        temperature=torch.full((rows,), heat, device=device),
        top_k=torch.zeros(rows, dtype=torch.int32, device=device),
        top_p=torch.ones(rows, device=device),
        seed=torch.arange(rows, dtype=torch.int64, device=device),
    )
    return tensors, SamplingMode.SAMPLED if heat else SamplingMode.GREEDY
