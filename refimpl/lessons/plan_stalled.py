"""A forward stream that stands still between the publish of a step and its draft extend, while others go on.

What the plan stream writes meanwhile into inputs of that draft extend spoils no text, since the target verifies every
token; it spoils what the draft remembers, so that fewer of its tokens are accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any
from unittest.mock import patch

from refimpl import device as devices
from refimpl.engine.request import SamplingParams
from refimpl.fences import preset
from refimpl.lessons.lossless.load import Arrival
from refimpl.lessons.lossless.play import play
from refimpl.lessons.lossless.setups import Setup, build
from refimpl.model.tokenizer import Tokenizer

PROMPTS = ("def fib(n):", "class Queue:")
TOKENS, CONTEXT = 24, 64
STALL_US = 3000.0
"""Longer than the host needs for the next step, and than its plan."""


@dataclass(frozen=True)
class Decoded:
    """What came of the prompts.

    Args:
        texts: the tokens of each.
        accept_len: tokens that a verify emits for a request, on average.
    """

    texts: tuple[tuple[int, ...], ...]
    accept_len: float


def decoded(row: str, stalls: bool = True, device: str | None = None) -> Decoded:
    """Decodes two prompts with the trained weights of the smallest size.

    Args:
        row: of the history, with EAGLE as its worker.
        stalls: whether the forward stream stands still behind each publish.
        device: ``"cuda"`` or ``"sim"``; None: the best one.

    Order:
        The host blocks until the device is idle.
    """
    chosen, moment = device or devices.best(), preset(row)
    options = {"fences": moment.chosen(), **moment.engine}
    setup = Setup(
        "eagle", models="nano", device=chosen, max_running_requests=len(PROMPTS), max_context=CONTEXT, options=options
    )
    scheduler = build(setup).scheduler
    # The first stall of a process blocks the host.
    devices.sleep_stream(chosen, 1.0)
    publish = scheduler.lengths.publish

    @wraps(publish)
    def then_stand_still(*published: Any) -> None:
        publish(*published)
        devices.sleep_stream(chosen, STALL_US)

    with patch.object(scheduler.lengths, "publish", then_stand_still if stalls else publish):
        reqs = play(scheduler, _load()).reqs
    accepted = [req.accept_lens for req in reqs]
    emitted = sum(length * times for one in accepted for length, times in one.items())
    verifies = sum(times for one in accepted for times in one.values())
    return Decoded(tuple(tuple(req.output_ids) for req in reqs), emitted / verifies)


def _load() -> Sequence[Arrival]:
    params = SamplingParams(max_new_tokens=TOKENS, ignore_eos=True)
    return [Arrival(0, tuple(Tokenizer.load().encode(prompt)), params) for prompt in PROMPTS]
