"""The oracle: dense attention over one request at a time, on the CPU; no cache, no batch, no code of the engine.

Every token is checked by itself: given the prompt and the tokens before it, is it the one that the target likes best?
So a request goes on being compared behind a token that was excused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from refimpl.model.attention import DenseAttention
from refimpl.model.qwen3 import Qwen3

EPSILON = {torch.float32: 1e-4, torch.bfloat16: 0.15}
"""How far below the best logit a token may lie: kernels for other row counts round differently. In float32 the logits
of these models differ by some 1e-5; in bfloat16 by some of its steps, which are 1/16 between 8 and 16."""


@dataclass(frozen=True)
class Judged:
    """How the tokens of a request compare with the oracle's.

    Args:
        tokens: how many were checked.
        near_ties: how many were not the best, by at most epsilon.
        wrong: places of those that were worse.
        furthest: how far below the best logit the worst token lies; 0 where all are best.
    """

    tokens: int
    near_ties: int
    wrong: tuple[int, ...]
    furthest: float


def judge_greedy(
    target: Qwen3, prompt_ids: Sequence[int], output_ids: Sequence[int], epsilon: float | None = None
) -> Judged:
    """Compares every token of an output with the target's choice behind the tokens before it.

    Args:
        target: on the CPU, or where dense attention shall run.
        prompt_ids, output_ids: of a finished or aborted request.
        epsilon: how far below the best logit a token may lie; None for :data:`EPSILON` of the target's dtype.
    """
    if not output_ids:
        return Judged(0, 0, (), 0.0)
    logits = next_logits(target, [*prompt_ids, *output_ids[:-1]])[len(prompt_ids) - 1 :]
    chosen = logits.gather(1, torch.tensor(output_ids, device=logits.device)[:, None]).squeeze(1)
    below = (logits.max(-1).values - chosen).tolist()
    bound = EPSILON[target.dtype] if epsilon is None else epsilon
    near = sum(0 < gap <= bound for gap in below)
    wrong = tuple(place for place, gap in enumerate(below) if not gap <= bound)
    return Judged(len(below), near, wrong, max(below))


def next_logits(target: Qwen3, token_ids: Sequence[int]) -> torch.Tensor:
    """``[t, V]`` float32: the scores behind each token, the mask ruled out."""
    config = target.config
    ids = torch.tensor([list(token_ids)], device=target.device)
    attention = DenseAttention(window=config.sliding_window, sliding_layers=config.sliding_layers)
    with torch.inference_mode():
        hidden, _ = target(ids, torch.arange(ids.shape[1], device=target.device)[None], attention)
        logits = target.logits(hidden)[0].float()
        logits[:, config.mask_token_id] = float("-inf")
    return logits
