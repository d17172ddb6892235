"""What every forward brought, dropped or not, beside what dense attention says should have come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate

import torch
from torch import Tensor

from refimpl.lessons.history.watched import Continued, Stay
from refimpl.lessons.lossless.oracle import judge_greedy
from refimpl.model.attention import DenseAttention
from refimpl.model.eagle import Eagle3
from refimpl.model.qwen3 import Qwen3
from refimpl.model.weights_io import Draft

FAR = 1e-2
"""How far a hidden state may lie from the oracle's, as a share of its length: kernels round differently."""


def wrong_forwards(stays: Mapping[Stay, Continued], target: Qwen3, draft: Draft | None) -> Iterator[str]:
    """A sentence for each stay of which some forward brought a wrong token, or handed on a wrong hidden state.

    Args:
        stays: what was seen.
        target, draft: on the CPU.
    """
    for (rid, epoch), stay in stays.items():
        if not stay.tokens:
            continue
        where = f"request {rid}" if epoch == 0 else f"request {rid} after {epoch} retractions"
        wrong = judge_greedy(target, stay.begin, stay.tokens).wrong
        if wrong:
            yield f"{where}: {stay.begin} -> {stay.rows}: tokens {list(wrong)} are not what comes next"
        elif isinstance(draft, Eagle3) and (far := _far_steps(stay, target, draft)):
            yield f"{where}: {stay.begin} -> {stay.rows}: forwards {far} hand on hidden states of other tokens"


def _far_steps(stay: Continued, target: Qwen3, draft: Eagle3) -> list[int]:
    """Forwards behind which the draft's hidden state is not that of the tokens so far."""
    ends = [len(stay.begin) + n for n in accumulate(map(len, stay.rows))]
    right = _hidden_states(target, draft, [*stay.begin, *stay.tokens])
    # The last token of a forward is not in the cache yet: the hidden state is of the one before it.
    pairs = zip(stay.hidden, (right[end - 2] for end in ends), strict=True)
    return [step for step, (found, wanted) in enumerate(pairs) if _far(found.cpu().float(), wanted)]


def _far(found: Tensor, wanted: Tensor) -> bool:
    return not float((found - wanted).norm()) <= FAR * float(wanted.norm())


def _hidden_states(target: Qwen3, draft: Eagle3, tokens: list[int]) -> Tensor:
    """``[t - 1, d]``: of each token but the last, what the head makes of it and of the next one, without a cache."""
    config = target.config
    ids, positions = torch.tensor([tokens]), torch.arange(len(tokens))[None]
    attention = DenseAttention(window=config.sliding_window, sliding_layers=config.sliding_layers)
    with torch.inference_mode():
        _, features = target(ids, positions, attention, draft.config.feature_layers)
        assert features is not None, "the draft names its feature layers"
        hidden: Tensor = draft(ids[:, 1:], draft.fuse(features)[:, :-1], positions[:, :-1], DenseAttention())
    return hidden[0].float()
