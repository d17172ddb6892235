"""Requests that show what is at stake, drawn from a seed: by kind of load, in the size of the models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from refimpl.engine.request import SamplingParams
from refimpl.fences import Load
from refimpl.lessons.lossless.load import Arrival
from refimpl.lessons.lossless.models import VOCAB_SIZE
from refimpl.lessons.lossless.setups import TINY_MODELS
from refimpl.model.tokenizer import Tokenizer

PROMPTS = (
    "def fib(n):",
    "class Queue:",
    "import os\n",
    "for i in range(10):",
    "if __name__ ==",
    "    return self._",
    "with open(path) as f:",
    "try:\n    value = int(",
    "# The first",
    "assert len(",
)
"""What trained models continue."""
FIRST_TURN = 3
"""In which requests come that give up: the first decodes are over by then."""
# Tokens of the tiny vocabulary that end no text and mask nothing.
_PLAIN_TOKENS = VOCAB_SIZE - 8


@dataclass(frozen=True)
class Size:
    """How large a load is.

    Args:
        rows: requests that run together.
        context: tokens of a request, at most.
        prompt: of these, of its prompt.
        short, long: tokens of an output, at most, where rows change hands, and where they do not.
    """

    rows: int
    context: int
    prompt: int
    short: int
    long: int


SIZES = {
    TINY_MODELS: Size(rows=2, context=28, prompt=6, short=7, long=16),
    "nano": Size(rows=3, context=56, prompt=12, short=14, long=40),
    "small": Size(rows=4, context=80, prompt=12, short=16, long=60),
}
"""By models."""


def draw(load: Load, models: str, seed: int) -> list[Arrival]:
    """The requests of a run, the same for a seed, in the order of their arrivals.

    Args:
        load: ``STEADY``: as many as there are rows, all at once. ``HANDOVER``: more of them, short and ragged, so that
            in most turns a row goes on while the redundant forward of its last owner is in flight. ``ABORTS``: one
            that runs on, beside others of which most give up while their prefill is in flight. ``PREBUILT``: as
            ``HANDOVER``, and the later ones have their prefill done elsewhere, of prompts longer than what was in their
            row before.
        models: which size.
        seed: of all that is drawn.
    """
    random, size = Random(seed), SIZES[models]
    drawn = _Drawn(random, models)
    match load:
        case Load.STEADY:
            return [drawn.steady() for _ in range(size.rows)]
        case Load.HANDOVER:
            return [drawn.short() for _ in range(2 * size.rows + 1)]
        case Load.PREBUILT:
            # The first two wait for a row, with their slots; those of the others, too, may have been a request's whose
            # redundant forward is in flight.
            turns = [max(0, 2 * n - 2) for n in range(size.rows + 2)]
            return [drawn.short() for _ in range(size.rows)] + [drawn.prebuilt(turn) for turn in turns]
        case Load.ABORTS:
            # One a turn: each finds the row of the one before it, whose prefill is in flight.
            others = [drawn.given_up(turn) for turn in range(FIRST_TURN, FIRST_TURN + 2 * size.rows + 2)]
            return [drawn.steady(), *others]


class _Drawn:
    """Draws one request after the other."""

    def __init__(self, random: Random, models: str) -> None:
        self._random, self._models, self._size = random, models, SIZES[models]

    def steady(self) -> Arrival:
        return self._arrival((1, self._size.prompt), (self._size.long // 2, self._size.long))

    def short(self) -> Arrival:
        return self._arrival((1, self._size.prompt), (1, self._size.short))

    def prebuilt(self, turn: int) -> Arrival:
        prompts = (self._size.prompt, self._size.prompt + self._size.short)
        return replace(self._arrival(prompts, (1, self._size.short)), turn=turn, prebuilt=True)

    def given_up(self, turn: int) -> Arrival:
        (patience,) = self._random.choices((1, 2, None), weights=(4, 1, 1))
        return replace(self.short(), turn=turn, abort_after=patience)

    def _arrival(self, prompts: tuple[int, int], outputs: tuple[int, int]) -> Arrival:
        params = SamplingParams(max_new_tokens=self._random.randint(*outputs), ignore_eos=True)
        return Arrival(turn=0, prompt_ids=self._prompt(self._random.randint(*prompts)), params=params)

    def _prompt(self, length: int) -> tuple[int, ...]:
        random = self._random
        if self._models == TINY_MODELS:
            return tuple(random.randrange(_PLAIN_TOKENS) for _ in range(length))
        tokens = list[int]()
        while len(tokens) < length:
            tokens += random.choice(_texts())
        return tuple(tokens[:length])


@cache
def _texts() -> Sequence[Sequence[int]]:
    tokenizer = Tokenizer.load()
    return [tokenizer.encode(prompt, bos=False) for prompt in PROMPTS]
