"""Losses are compiled where that works, warmed up, and run as they are where it does not."""

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from refimpl.train.distill import half_precision
from refimpl.train.workplace import Say, Workplace

Loss = Callable[..., Tensor]


def ready(loss: Loss, learned: Sequence[nn.Parameter], example: Sequence[Tensor], place: Workplace, say: Say) -> Loss:
    """A loss in half precision that has run once, forward and backward, so that its first step takes no longer.

    Args:
        loss: of tensors like `example`.
        learned: the parameters; their gradients are cleared again.
        example: a batch.
        place: whether to compile.
        say: told how long it took, or why it stays uncompiled.
    """

    def in_half(*batch: Tensor) -> Tensor:
        with half_precision(place.device):
            return loss(*batch)

    chosen: Loss = in_half
    start = time.time()
    if place.compiled:
        compiled: Loss = torch.compile(in_half, dynamic=False)
        try:
            _once(compiled, learned, example)
            chosen = compiled
        except Exception as error:  # a compiler fails in many ways, and the run is worth more than its speed
            say(f"not compiled: {type(error).__name__}: {str(error)[:300]}")
    if chosen is in_half:
        _once(chosen, learned, example)
    say(f"warm after {time.time() - start:.1f} s")
    return chosen


def _once(loss: Loss, learned: Sequence[nn.Parameter], example: Sequence[Tensor]) -> None:
    loss(*example).backward()
    for parameter in learned:
        parameter.grad = None
    if example[0].is_cuda:
        torch.cuda.synchronize()
