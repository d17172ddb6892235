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
            in most turns a row goes on while the redundant forward of its last owner is in flight. ``ABORTS``: where
            many give up on the way, some while their prefill runs. ``PREBUILT``: as ``HANDOVER``, and the later ones
            have their prefill done elsewhere.
        models: which size.
        seed: of all that is drawn.
    """
    random, size = Random(seed), SIZES[models]
    if load is Load.STEADY:
        return [_arrival(random, models, size.long, shortest=size.long // 2) for _ in range(size.rows)]
    drawn = [_arrival(random, models, size.short) for _ in range(2 * size.rows + 1)]
    later = drawn[size.rows :]
    match load:
        case Load.ABORTS:
            drawn = sorted((_given_up(one, random) for one in drawn), key=lambda one: one.turn)
        case Load.PREBUILT:
            drawn[size.rows :] = [replace(one, prebuilt=True) for one in later]
    return drawn


def _arrival(random: Random, models: str, longest: int, shortest: int = 1) -> Arrival:
    params = SamplingParams(max_new_tokens=random.randint(shortest, longest), ignore_eos=True)
    return Arrival(turn=0, prompt_ids=_prompt(random, models), params=params)


def _given_up(arrival: Arrival, random: Random) -> Arrival:
    # Some at once, while their prefill is in flight.
    patience = random.choice((None, None, 1, 1, 2, 3, 5))
    return replace(arrival, turn=random.randint(0, 6), abort_after=patience)


def _prompt(random: Random, models: str) -> tuple[int, ...]:
    size = SIZES[models]
    if models == TINY_MODELS:
        return tuple(random.randrange(_PLAIN_TOKENS) for _ in range(random.randint(1, size.prompt)))
    return tuple(random.choice(_texts())[: size.prompt])


@cache
def _texts() -> Sequence[Sequence[int]]:
    tokenizer = Tokenizer.load()
    return [tokenizer.encode(prompt) for prompt in PROMPTS]
