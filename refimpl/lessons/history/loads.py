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
            ``HANDOVER``, and the later ones have their prefill done elsewhere.
        models: which size.
        seed: of all that is drawn.
    """
    random, size = Random(seed), SIZES[models]
    match load:
        case Load.STEADY:
            return [_arrival(random, models, size.long, shortest=size.long // 2) for _ in range(size.rows)]
        case Load.HANDOVER:
            return _handover(random, models)
        case Load.PREBUILT:
            drawn = _handover(random, models)
            return drawn[: size.rows] + [replace(one, prebuilt=True) for one in drawn[size.rows :]]
        case Load.ABORTS:
            return [_arrival(random, models, size.long, shortest=size.long // 2), *_given_up(random, models)]


def _handover(random: Random, models: str) -> list[Arrival]:
    size = SIZES[models]
    return [_arrival(random, models, size.short) for _ in range(2 * size.rows + 1)]


def _given_up(random: Random, models: str) -> list[Arrival]:
    """One a turn, so that each finds the row of the one before it, whose prefill is in flight."""
    size = SIZES[models]
    arrivals = [_arrival(random, models, size.short) for _ in range(2 * size.rows + 2)]
    patience = random.choices((1, 2, None), weights=(4, 1, 1), k=len(arrivals))
    # Behind the first decodes, of which something may be left over.
    return [
        replace(one, turn=3 + turn, abort_after=turns)
        for turn, (one, turns) in enumerate(zip(arrivals, patience, strict=True))
    ]


def _arrival(random: Random, models: str, longest: int, shortest: int = 1) -> Arrival:
    params = SamplingParams(max_new_tokens=random.randint(shortest, longest), ignore_eos=True)
    return Arrival(turn=0, prompt_ids=_prompt(random, models), params=params)


def _prompt(random: Random, models: str) -> tuple[int, ...]:
    size = SIZES[models]
    if models == TINY_MODELS:
        return tuple(random.randrange(_PLAIN_TOKENS) for _ in range(random.randint(1, size.prompt)))
    return tuple(random.choice(_texts())[: size.prompt])


@cache
def _texts() -> Sequence[Sequence[int]]:
    tokenizer = Tokenizer.load()
    return [tokenizer.encode(prompt) for prompt in PROMPTS]
