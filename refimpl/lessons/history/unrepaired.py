"""The plan stream's repair left out: what its racy read found then reaches the verify."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from unittest.mock import patch

from torch import Tensor

from refimpl import device as devices
from refimpl.engine.forward_batch import ForwardBatch
from refimpl.engine.scheduler import Scheduler
from refimpl.fences import DraftDone, Fences


def is_repaired(fences: Fences) -> bool:
    """Whether a repair hides what the plan reads too early."""
    return fences.draft_done is DraftDone.REPAIRED


@contextmanager
def unrepaired(scheduler: Scheduler) -> Iterator[None]:
    """Inside, nothing is copied once more behind the join: what the plan stream copied stays, as tokens of some kind.

    Args:
        scheduler: with a plan stream, and an EAGLE chain: all that its verify starts from are tokens.
    """
    dev, forward_stream = devices.get(scheduler.device), scheduler.forward_stream
    verify = next(runner for runner in scheduler.worker.runners() if runner.name == "verify")
    load_tokens, vocabulary = verify.load_tokens, scheduler.worker.resources.target.config.vocab_size

    @wraps(load_tokens)
    def on_plan_alone(batch: ForwardBatch, tokens: Mapping[str, Tensor]) -> None:
        if dev.current_stream() != forward_stream:
            load_tokens(batch, tokens)
            return
        # Hazard: RAW. The verify starts from drafted tokens that plan may have copied before they were there. What
        # nobody has written yet may be any number, and as an index it would end a process that drives a GPU.
        for name in tokens:
            verify.inputs.tokens[name].remainder_(vocabulary)

    with patch.object(verify, "load_tokens", on_plan_alone):
        yield
