"""Pinned memory through which the host hands numbers to the device, two steps deep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from refimpl import device as devices

DEPTH = 2
"""While step N+1 is prepared, the copies of step N may still be pending; those of step N-1 are done."""


class Staging:
    """Uploads of small host arrays without blocking the host and without allocating pinned memory a step.

    Args:
        device: where to.
        dtype: of the numbers.
        capacity: numbers that one step uploads, at most.

    Order:
        ``upload`` copies on the current stream. ``next_step``, called when step N is launched, turns to the half that
        step N-1 used. Safe because: before the host uploads for step N+1 it synchronizes with ``copy_done`` of step
        N-1, which comes after that step's forward, which waited for its uploads.
    """

    def __init__(self, device: str, dtype: torch.dtype, capacity: int) -> None:
        self.device = device
        self._dtype = torch.empty(0, dtype=dtype).numpy().dtype
        self._halves = [devices.pinned(capacity, dtype, device) for _ in range(DEPTH)]
        self._half, self._used = 0, 0

    def next_step(self) -> None:
        """Turn to the other half; what it holds is copied before the next upload."""
        self._half, self._used = (self._half + 1) % DEPTH, 0

    def upload(self, numbers: Sequence[float]) -> torch.Tensor:
        """A new device tensor with these numbers, copied on the current stream; the host does not block."""
        # By way of NumPy, which reads a list of numbers faster.
        source = torch.from_numpy(np.asarray(numbers, dtype=self._dtype))
        begin, self._used = self._used, self._used + source.numel()
        assert self._used <= self._halves[0].numel(), "a step uploads more numbers than its staging holds"
        staged = self._halves[self._half][begin : self._used]
        staged.copy_(source)
        return staged.to(self.device, non_blocking=True)
