"""Small loads for a timeline: what is at stake happens once, among few requests."""

from __future__ import annotations

from dataclasses import replace

from refimpl.engine.request import SamplingParams
from refimpl.fences import Load
from refimpl.lessons.lossless.load import Arrival
from refimpl.model.tokenizer import Tokenizer

ROWS, CONTEXT = 2, 128
LONG, SHORT = 28, 12
"""Tokens of a request that runs on, and of one that ends and leaves its row to the next."""
_ARRIVES = 4
"""The turn before which a prebuilt request arrives: its keys and values are there when the row is."""
_GIVES_UP = 4
"""The turn before which a request arrives that gives up while its prefill is in flight."""


def small_load(load: Load) -> list[Arrival]:
    """Two or three requests of the trained models, for :data:`ROWS` rows, in the order of their arrivals.

    Args:
        load: ``STEADY``: two that run together. ``HANDOVER``: a third one, which takes over the row of the first while
            its redundant forward is in flight. ``PREBUILT``: the same, where the third has its prefill done elsewhere.
            ``ABORTS``: the second gives up while its prefill is in flight, and the third takes its row.
    """
    first, second, third = _arrival("def fib(n):", LONG), _arrival("class Queue:", LONG), _arrival("import os\n", SHORT)
    match load:
        case Load.STEADY:
            return [first, second]
        case Load.HANDOVER:
            return [replace(first, params=_params(SHORT)), second, third]
        case Load.PREBUILT:
            return [replace(first, params=_params(SHORT)), second, replace(third, turn=_ARRIVES, prebuilt=True)]
        case Load.ABORTS:
            return [first, replace(second, turn=_GIVES_UP, abort_after=1), replace(third, turn=_GIVES_UP)]


def _arrival(prompt: str, tokens: int) -> Arrival:
    return Arrival(0, tuple(Tokenizer.load().encode(prompt)), _params(tokens))


def _params(tokens: int) -> SamplingParams:
    return SamplingParams(max_new_tokens=tokens, ignore_eos=True)
