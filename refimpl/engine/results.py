"""The way of results to the host: a small ring on the device, its twin in pinned memory, and an event each.

A graph's outputs are overwritten by its next replay, and the copy runs on another stream; so the forward stream copies
them aside first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from refimpl import device as devices
from refimpl.engine.forward_batch import ForwardResult
from refimpl.engine.staging import DEPTH
from refimpl.engine.streams import Streams


@dataclass(frozen=True)
class _Slot:
    aside: torch.Tensor
    pinned: torch.Tensor
    copy_done: Any
    views: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)

    def first(self, bs: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The first ``bs`` rows of both. Views are kept: making them costs the host as much as a launch."""
        if bs not in self.views:
            self.views[bs] = self.aside[:bs], self.pinned[:bs]
        return self.views[bs]


class ResultRing:
    """Two slots: results are read one step late.

    Args:
        device: ``"cuda"`` or ``"sim"``.
        streams: the engine's.
        max_batch, width: of the packed results.
    """

    def __init__(self, device: str, streams: Streams, max_batch: int, width: int) -> None:
        dev = devices.get(device)
        self._streams = streams
        self._slots = [
            _Slot(
                torch.zeros(max_batch, width, dtype=torch.int32, device=device),
                devices.pinned((max_batch, width), torch.int32, device),
                dev.Event(),
            )
            for _ in range(DEPTH)
        ]

    def copy_to_cpu(self, result: ForwardResult, step: int) -> None:
        """Queues the copy of a step's results, and says in the result where they will be.

        Order:
            Called with ``forward_stream`` current; copies on ``copy_stream``. The host does not block.
        """
        slot = self._slots[step % DEPTH]
        aside, pinned = slot.first(result.packed.shape[0])
        # Safe because: copy_stream read this slot before copy_done of step N-2, which the host has synchronized with.
        aside.copy_(result.packed)
        # Safe because: copy_stream reads the slot after forward wrote it.
        self._streams.copy_stream.wait_stream(self._streams.forward_stream)
        with self._streams.copy_stream:
            pinned.copy_(aside, non_blocking=True)
            slot.copy_done.record(self._streams.copy_stream)
        result.packed_cpu, result.copy_done = pinned, slot.copy_done
