"""The target reads its own greedy text: what is new in it is learned, what repeats itself is unlearned.

A small model that always takes the likeliest token soon says the same again. Loops are easy to draft, so they would
flatter every draft. Unlikelihood training lowers the probability of the very tokens that complete a repetition, no
further than needed: how much the target repeats itself is measured each time it writes. Learning the rest makes the
target sure of what it says, as models that people use have been made sure by what came after their first training.
"""

import torch
from torch import Tensor

from refimpl.model import registry
from refimpl.model.qwen3 import Qwen3
from refimpl.train.text import CorpusText
from refimpl.train.write import Writer

RUN = 8
"""A token that completes a run of this many tokens, seen before in the text, counts as repetition."""
MEASURED_TOKENS = 128
"""Behind the prompt: over so many it is measured how much the target repeats itself."""
TOLERATED, TOO_MUCH = 0.35, 0.55
"""Shares of repetition from which on it is unlearned, and from which on it is so with full strength."""
PROMPT_TOKENS = (64, 192)
"""The shortest and the longest prompt, about as long as those that serve."""


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


def repeated_share(written: Tensor, lens: Tensor) -> float:
    """Share of runs of eight tokens that stood before, within the first 128 behind each prompt; 1 - their uniqueness.

    Args:
        written: ``[rows, length]``.
        lens: ``[rows]``, the prompts' lengths.
    """
    room = min(MEASURED_TOKENS, written.shape[1] - int(lens.max()))
    places = lens[:, None] + torch.arange(room, device=lens.device)
    return repetitions(written.gather(1, places))[:, RUN - 1 :].float().mean().item()


class GreedyText:
    """What the target writes greedily with the weights it has, in rows for its own training.

    Args:
        target: the model in training.
        prompts: where rows begin.
        length: of a row.
        pool_rows: rows written at once, with the weights of that moment; each is read once.
    """

    def __init__(self, target: Qwen3, prompts: CorpusText, length: int, pool_rows: int) -> None:
        """Makes a copy of the target that writes, in bf16 on a GPU."""
        dtype = torch.bfloat16 if target.device.type == "cuda" else torch.float32
        self._target, self._prompts = target, prompts
        self._copy = registry.make_target(target.config, target.device, dtype)
        self._writer = Writer(self._copy, pool_rows, length)
        self._rows, self._length = pool_rows, length
        self._pool: list[tuple[Tensor, Tensor]] = []
        self.repeated_share = 0.0

    def batch(self, rows: int) -> tuple[Tensor, Tensor]:
        """``[rows, length]`` tokens, and for each 1 where it is learned, down to -1 where it is unlearned."""
        if not self._pool:
            self._write(rows)
        return self._pool.pop()

    def _write(self, rows: int) -> None:
        with torch.no_grad():
            for mine, learned in zip(self._copy.parameters(), self._target.parameters(), strict=True):
                mine.copy_(learned)
        device = self._target.device
        tokens = self._prompts.batch(self._rows, self._length)
        shortest, longest = (min(tokens, self._length // 4) for tokens in PROMPT_TOKENS)
        lens = torch.randint(shortest, longest + 1, (self._rows,), device=device)
        written = self._writer.write(tokens, lens, torch.zeros(self._rows, device=device))
        behind = torch.arange(self._length, device=device) - lens[:, None]
        repeated = torch.cat([repetitions(part) for part in written.split(rows)]) & (behind >= 0)
        self.repeated_share = repeated_share(written, lens)
        strength = min(1.0, max(0.0, (self.repeated_share - TOLERATED) / (TOO_MUCH - TOLERATED)))
        judged = torch.where(repeated, -strength, 1.0)
        pairs = zip(written.split(rows), judged.split(rows), strict=True)
        self._pool = [(part, weights) for part, weights in pairs if len(part) == rows]
