"""DFLASH in transformers' loop and in ours: same weights must give the same tokens and the same accept lengths."""

import torch

from refimpl.engine import Engine
from refimpl.lessons.peers.clock import StepClock
from refimpl.lessons.peers.transformers_models import dflash_to_transformers, target_to_transformers
from refimpl.model.dflash import DFlash
from refimpl.model.qwen3 import Qwen3
from refimpl.model.weights_io import Draft

Decoded = tuple[list[int], list[int]]
"""New tokens, and how many of them each verify brought."""

SHORT_CYCLES = 2
"""Near the end transformers drafts less than a block, so as not to pass it: that many of its last cycles differ."""


def ours(engine: Engine, prompt: list[int], new_tokens: int) -> Decoded:
    """One prompt, greedily, through the engine."""
    pieces = [p.token_ids for p in engine.stream([prompt], max_new_tokens=new_tokens, ignore_eos=True)]
    # The first piece is the prefill's token.
    return [token for piece in pieces for token in piece], [len(piece) for piece in pieces[1:]]


@torch.no_grad()
def theirs(target: Qwen3, draft: Draft | None, prompt: list[int], new_tokens: int) -> Decoded:
    """The same in ``generate(assistant_model=…, speculation_type="dflash")``, on the device of the weights.

    Args:
        target, draft: a target and its DFLASH draft, on the CPU or on CUDA.
        prompt: tokens.
        new_tokens: how many.
    """
    assert isinstance(draft, DFlash), "this peer decodes with DFLASH"
    clock, ids = StepClock(), torch.tensor([prompt], device=target.device)
    out = target_to_transformers(target).generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=new_tokens,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        assistant_model=dflash_to_transformers(draft),
        speculation_type="dflash",
        stopping_criteria=[clock],
    )
    return out[0, len(prompt) :].tolist(), clock.kept().accept_lens(0)
