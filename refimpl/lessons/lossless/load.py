"""Loads drawn from a seed: requests that arrive at random turns, of random length, some of them aborted on the way."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from refimpl.engine.request import SEEDS, SamplingParams


@dataclass(frozen=True)
class Arrival:
    """One request of a load.

    Args:
        turn: of the loop, before which it arrives.
        prompt_ids: its prompt.
        params: how to sample.
        abort_after: turns after which its caller gives up; None: never.
        prebuilt: whether its prefill runs elsewhere.
    """

    turn: int
    prompt_ids: tuple[int, ...]
    params: SamplingParams
    abort_after: int | None = None
    prebuilt: bool = False


@dataclass(frozen=True)
class LoadShape:
    """What loads are drawn from.

    Args:
        requests: how many.
        vocabulary: prompts are tokens below this.
        max_prompt: tokens of the longest prompt.
        max_new: tokens of the longest output.
        turns: arrivals are spread over so many.
        aborted: share of the requests whose caller gives up.
        sampled: share of the requests with a temperature.
        ignore_eos: share of the requests that go on after the end-of-text token.
    """

    requests: int
    vocabulary: int
    max_prompt: int = 12
    max_new: int = 16
    turns: int = 12
    aborted: float = 0.1
    sampled: float = 0.0
    ignore_eos: float = 0.8


def draw_load(shape: LoadShape, seed: int) -> list[Arrival]:
    """A load, the same for a seed, in the order of its arrivals."""
    random = Random(seed)
    load = [_draw_arrival(shape, random) for _ in range(shape.requests)]
    return sorted(load, key=lambda arrival: arrival.turn)


def _draw_arrival(shape: LoadShape, random: Random) -> Arrival:
    length = random.randint(1, shape.max_prompt)
    return Arrival(
        # Half of them come at once, so that batches are large; the others find rows that were used before.
        turn=0 if random.random() < 0.5 else random.randint(0, shape.turns),
        prompt_ids=tuple(random.randrange(shape.vocabulary) for _ in range(length)),
        params=_draw_params(shape, random),
        abort_after=random.randint(0, shape.max_new) if random.random() < shape.aborted else None,
    )


def _draw_params(shape: LoadShape, random: Random) -> SamplingParams:
    sampled = random.random() < shape.sampled
    return SamplingParams(
        temperature=random.choice((0.5, 1.0, 1.5)) if sampled else 0.0,
        top_k=random.choice((0, 0, 5)) if sampled else 0,
        top_p=random.choice((1.0, 1.0, 0.8)) if sampled else 1.0,
        max_new_tokens=random.randint(1, shape.max_new),
        seed=random.randrange(SEEDS),
        ignore_eos=random.random() < shape.ignore_eos,
    )
