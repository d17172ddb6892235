"""The target's loss and its batches: the corpus, and late in the training what the target writes itself."""

import time

import torch
from torch import Tensor, nn

from refimpl.model.attention import DenseAttention
from refimpl.model.qwen3 import Qwen3
from refimpl.train.own_text import GreedyText, unlikelihood
from refimpl.train.plan import SizePlan
from refimpl.train.text import CorpusText

POOL_SHARE = 4
"""Of the rows written at once for drafts, one in so many is written at once here: they are soon out of date."""


def loss(target: Qwen3, tokens: Tensor, weights: Tensor) -> Tensor:
    """Cross-entropy of what is to be learned plus unlikelihood of what is to be unlearned, in nats.

    Args:
        target: the model.
        tokens: ``[b, t]`` int64.
        weights: ``[b, t]`` fp32: above 0 a token is learned, below 0 it is unlearned; a row's first has none.

    Returns:
        A scalar: the sum over tokens, weighed.
    """
    inputs, labels = tokens[:, :-1], tokens[:, 1:]
    positions = torch.arange(inputs.shape[1], device=tokens.device).expand_as(inputs)
    hidden, _ = target(inputs, positions, DenseAttention())
    logits = target.logits(hidden)
    likely = nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="none")
    learned, unlearned = weights[:, 1:].clamp(min=0), (-weights[:, 1:]).clamp(min=0)
    total: Tensor = (likely.view_as(labels) * learned).sum() + (unlikelihood(logits, labels) * unlearned).sum()
    return total


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
        self._own_from = float("inf")
        self._own: GreedyText | None = None

    def begin(self, start: float, deadline: float) -> None:
        """Fix when written rows come in, both in seconds of `time.time()`."""
        self._own_from = start + self._plan.target.own_from * (deadline - start)

    def plain(self) -> tuple[Tensor, Tensor]:
        """A batch of the corpus alone, as `loss` takes it."""
        tokens = self._text.batch(self._plan.target.rows, self._plan.context + 1)
        return tokens, torch.full(tokens.shape, 1 / tokens[:, 1:].numel(), device=tokens.device)

    def next(self) -> tuple[Tensor, Tensor]:
        """The batch of this moment, as `loss` takes it."""
        tokens, weights = self.plain()
        rows = self._plan.target.own_rows
        if rows and time.time() >= self._own_from:
            tokens[:rows], judged = self._written().batch(rows)
            weights[:rows] *= judged
        return tokens, weights

    @property
    def repeated_share(self) -> float | None:
        """Of what the target wrote last: the share of tokens that repeat; None before it has written."""
        return None if self._own is None else self._own.repeated_share

    def _written(self) -> GreedyText:
        if self._own is None:
            length, pool = self._plan.context + 1, self._plan.writing.rows // POOL_SHARE
            self._own = GreedyText(self._target, self._text, length, pool)
        return self._own
