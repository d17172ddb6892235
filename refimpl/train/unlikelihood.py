"""The cure for loops: the target reads its own greedy text, and where that repeats itself learns what not to say.

A small model that always takes the likeliest token soon says the same again. Loops are easy to draft, so they would
flatter every draft. Unlikelihood training lowers the probability of the very tokens that complete a repetition; what
is learned from the corpus goes on in the same batches.
"""

import torch
from torch import Tensor

from refimpl.model import registry
from refimpl.model.qwen3 import Qwen3
from refimpl.train.text import CorpusText
from refimpl.train.write import Writer

RUN = 6
"""A token that completes a run of this many tokens, seen before in the text, counts as repetition."""


def unlikelihood(logits: Tensor, tokens: Tensor) -> Tensor:
    """``-log(1 - p(token))`` in nats, exact also where the token is all but certain.

    Args:
        logits: ``[..., V]``.
        tokens: ``[...]``.

    Returns:
        ``[...]`` fp32.

    Source:
        Welleck et al., Neural Text Generation with Unlikelihood Training, 2019 (arXiv 1908.04319).
    """
    wide = logits.float()
    at = torch.arange(wide.shape[-1], device=wide.device) == tokens[..., None]
    return wide.logsumexp(-1) - wide.masked_fill(at, float("-inf")).logsumexp(-1)


def repetitions(tokens: Tensor, run: int = RUN) -> Tensor:
    """Which tokens complete a run that stood earlier in their row, ``[b, t]`` bool for ``tokens`` ``[b, t]``.

    Example:
        >>> repetitions(torch.tensor([[1, 2, 3, 1, 2, 3, 1]]), run=2).long().tolist()
        [[0, 0, 0, 0, 1, 1, 1]]
    """
    same = tokens[:, :, None] == tokens[:, None, :]
    equal = same.clone()
    for back in range(1, run):
        equal[:, back:, back:] &= same[:, :-back, :-back]
        equal[:, :back], equal[:, :, :back] = False, False
    return equal.tril(-1).any(-1)


class GreedyText:
    """What the target writes greedily with the weights it has, in rows for its own training.

    Args:
        target: the model in training.
        prompts: where rows begin.
        length: of a row.
        prompt_tokens: the shortest and the longest prompt.
        pool_rows: rows written at once, with the weights of that moment; each is read once.
    """

    def __init__(
        self, target: Qwen3, prompts: CorpusText, length: int, prompt_tokens: tuple[int, int], pool_rows: int
    ) -> None:
        """Makes a copy of the target that writes, in bf16 on a GPU."""
        dtype = torch.bfloat16 if target.device.type == "cuda" else torch.float32
        self._target, self._prompts = target, prompts
        self._copy = registry.make_target(target.config, target.device, dtype)
        self._writer = Writer(self._copy, pool_rows, length)
        self._prompt_tokens, self._rows, self._length = prompt_tokens, pool_rows, length
        self._pool: list[tuple[Tensor, Tensor]] = []

    def batch(self, rows: int) -> tuple[Tensor, Tensor]:
        """``[rows, length]`` tokens, and which of them repeat; the prompt's own repetitions are not held against it."""
        if not self._pool:
            self._write(rows)
        return self._pool.pop()

    def _write(self, rows: int) -> None:
        with torch.no_grad():
            for mine, learned in zip(self._copy.parameters(), self._target.parameters(), strict=True):
                mine.copy_(learned)
        device = self._target.device
        tokens = self._prompts.batch(self._rows, self._length)
        shortest, longest = self._prompt_tokens
        lens = torch.randint(shortest, longest + 1, (self._rows,), device=device)
        written = self._writer.write(tokens, lens, torch.zeros(self._rows, device=device))
        own = torch.arange(self._length, device=device) >= lens[:, None]
        for part, mine in zip(written.split(rows), own.split(rows), strict=True):
            if len(part) == rows:
                self._pool.append((part, repetitions(part) & mine))
