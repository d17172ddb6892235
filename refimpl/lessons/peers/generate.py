"""transformers' `generate`: the loop that synchronizes every step, plain or with a DFLASH draft."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from refimpl.lessons.peers.clock import StepClock

WARM_STEPS = 4
"""Steps at the start that are not counted: the prompt's forward, and what is made at first use."""


@dataclass(frozen=True)
class Run:
    """One run of a peer's loop.

    Args:
        steps_ms: host time of each step, once the loop is warm.
        accept_lens: tokens that each of these steps added to one request.
        tokens: what the first request got.
    """

    steps_ms: tuple[float, ...]
    accept_lens: tuple[int, ...]
    tokens: tuple[int, ...]

    @property
    def accept_len(self) -> float:
        """Tokens a step, on average."""
        return sum(self.accept_lens) / len(self.accept_lens)


def greedy(model: Any, prompts: Sequence[Sequence[int]], new_tokens: int, **options: Any) -> Run:
    """Decode greedily with `generate` and its growing cache; prompts of one length share a batch.

    Args:
        model: a causal language model of transformers.
        prompts: token ids, all equally many.
        new_tokens: tokens to add to each; end-of-sequence tokens do not stop it.
        options: further arguments of `generate`, such as `cache_implementation="static"`.
    """
    clock = StepClock()
    out = _generate(model, prompts, new_tokens, clock, **options)
    accept_lens = tuple(clock.accept_lens(WARM_STEPS))
    return Run(tuple(clock.steps_ms(WARM_STEPS)), accept_lens, out)


def greedy_with_dflash(model: Any, draft: Any, prompt: Sequence[int], new_tokens: int) -> Run:
    """Decode one prompt greedily with a DFLASH draft; transformers does this for one request at a time.

    Args:
        model: the target, a causal language model of transformers.
        draft: its DFLASH draft, as transformers' class.
        prompt: token ids.
        new_tokens: tokens to add; end-of-sequence tokens do not stop it.
    """
    clock = StepClock()
    out = _generate(model, [prompt], new_tokens, clock, assistant_model=draft, speculation_type="dflash")
    kept = clock.kept()
    # The last cycles draft fewer tokens, since they may not go past the end.
    whole = max(0, len(kept.seconds) - 2)
    kept = StepClock(kept.seconds[:whole], kept.lengths[:whole])
    return Run(tuple(kept.steps_ms(WARM_STEPS)), tuple(kept.accept_lens(WARM_STEPS)), out)


@torch.no_grad()
def _generate(
    model: Any, prompts: Sequence[Sequence[int]], new_tokens: int, clock: StepClock, **options: Any
) -> tuple[int, ...]:
    input_ids = torch.tensor(prompts, device=model.device)
    out = model.generate(
        input_ids,
        attention_mask=torch.ones_like(input_ids),
        max_new_tokens=new_tokens,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        stopping_criteria=[clock],
        **options,
    )
    return tuple(out[0, input_ids.shape[1] :].tolist())
