"""The target's loss: the next token of the corpus, and in its own text what it should not have said again."""

import time

import torch
from torch import Tensor, nn

from refimpl.model.attention import DenseAttention
from refimpl.model.qwen3 import Qwen3
from refimpl.train.plan import SizePlan
from refimpl.train.text import CorpusText
from refimpl.train.unlikelihood import GreedyText, unlikelihood


def loss(target: Qwen3, tokens: Tensor, learned: Tensor, repeated: Tensor) -> Tensor:
    """Mean cross-entropy in nats over the rows that are learned, plus mean unlikelihood over the others.

    Args:
        target: the model.
        tokens: ``[b, t]`` int64.
        learned: ``[b]`` fp32: 1 for a row of the corpus, 0 for one that the target wrote.
        repeated: ``[b, t]`` bool: tokens of written rows that repeat (`repetitions`).

    Returns:
        A scalar. Written rows count as many tokens as they have, so that few repetitions weigh little.
    """
    inputs, labels = tokens[:, :-1], tokens[:, 1:]
    positions = torch.arange(inputs.shape[1], device=tokens.device).expand_as(inputs)
    hidden, _ = target(inputs, positions, DenseAttention())
    logits = target.logits(hidden)
    each = nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="none")
    likely = (each.view_as(labels).mean(1) * learned).sum() / learned.sum()
    unlikely = (unlikelihood(logits, labels) * repeated[:, 1:]).mean(1).sum() / (1 - learned).sum().clamp(min=1)
    return likely + unlikely


POOL_SHARE = 4
"""Of the rows written at once for drafts, one in so many is written at once here: they are soon out of date."""


class TargetBatches:
    """Batches of one shape: rows of the corpus, and late in the training rows that the target wrote greedily.

    Args:
        target: the model in training.
        text: the corpus.
        plan: how many rows, of which length, from when on.
    """

    def __init__(self, target: Qwen3, text: CorpusText, plan: SizePlan) -> None:
        """Writes nothing yet."""
        self._target, self._text, self._plan = target, text, plan
        self._greedy_at = float("inf")
        self._greedy: GreedyText | None = None

    def begin(self, start: float, deadline: float) -> None:
        """Fix when written rows come in, both in seconds of `time.time()`."""
        self._greedy_at = start + self._plan.target.greedy_from * (deadline - start)

    def plain(self) -> tuple[Tensor, Tensor, Tensor]:
        """A batch of the corpus alone, as `loss` takes it."""
        tokens = self._text.batch(self._plan.target.rows, self._plan.context + 1)
        return tokens, torch.ones(len(tokens), device=tokens.device), torch.zeros_like(tokens, dtype=torch.bool)

    def next(self) -> tuple[Tensor, Tensor, Tensor]:
        """The batch of this moment, as `loss` takes it."""
        tokens, learned, repeated = self.plain()
        rows = self._plan.target.greedy_rows
        if rows and time.time() >= self._greedy_at:
            if self._greedy is None:
                length, pool = self._plan.context + 1, self._plan.writing.rows // POOL_SHARE
                self._greedy = GreedyText(self._target, self._text, length, self._plan.writing.prompt_tokens, pool)
            tokens[:rows], repeated[:rows] = self._greedy.batch(rows)
            learned[:rows] = 0
        return tokens, learned, repeated
