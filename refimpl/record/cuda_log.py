"""The values of index tensors as a GPU finds them: copied in-stream to a log, which is read after the run."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._python_dispatch import _disable_current_modes

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Slot:
    """The values of one index tensor at one moment.

    Args:
        chunk: Which part of the log.
        begin: Where it begins there.
        shape: The index tensor's shape.
        mask: It is a mask.
    """

    chunk: int
    begin: int
    shape: tuple[int, ...]
    mask: bool


@dataclass(frozen=True, eq=False)
class Held:
    """An index tensor's values inside a captured graph: each launch overwrites them.

    Args:
        values: Memory of the graph.
        mask: The index tensor is a mask.
    """

    values: torch.Tensor
    mask: bool


class IndexLog:
    """Index values in the order in which they were asked for.

    Args:
        device: The GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._chunks: list[torch.Tensor] = []
        self._used = 0
        self._read: list[NDArray[np.int64]] = []
        self._grow(_CHUNK)

    def keep(self, index: torch.Tensor) -> Slot | None:
        """Notes the values that the current stream finds here; None if there is no room, in a capture."""
        n = index.numel()
        if self._used + n > len(self._chunks[-1]):
            if torch.cuda.is_current_stream_capturing():
                return None
            self._grow(max(n, 2 * len(self._chunks[-1])))
        begin, self._used = self._used, self._used + n
        with _disable_current_modes(), torch.no_grad():
            self._chunks[-1][begin : begin + n].view(index.shape).copy_(index)
        return Slot(len(self._chunks) - 1, begin, tuple(index.shape), _is_mask(index))

    def keep_held(self, held: Held) -> Slot:
        """Notes what a launch of a graph, just made on the current stream, leaves of an index."""
        slot = self.keep(held.values)
        assert slot is not None, "a graph is not launched in a capture"
        return Slot(slot.chunk, slot.begin, slot.shape, held.mask)

    def read_blocking(self) -> None:
        """Copies the log to the host, once all that wrote it has run."""
        with _disable_current_modes():
            self._read = [chunk.cpu().numpy() for chunk in self._chunks]
        self._chunks = []

    def values(self, index: Any) -> Any:
        """The values of a slot, after `read_blocking`; anything else as it is."""
        if not isinstance(index, Slot):
            return index
        values = self._read[index.chunk][index.begin : index.begin + prod(index.shape)].reshape(index.shape)
        return values.astype(np.bool_) if index.mask else values

    def _grow(self, n: int) -> None:
        """Makes room: on an idle device, since every stream writes here, in memory that came from one of them."""
        with _disable_current_modes(), torch.inference_mode(False):
            self._chunks.append(torch.empty(n, dtype=torch.int64, device=self._device))
        self._used = 0
        synchronize_blocking()


def held_in_capture(index: torch.Tensor) -> Held:
    """Makes a copy of an index tensor a part of the graph under capture."""
    with _disable_current_modes(), torch.no_grad():
        values = torch.empty(index.shape, dtype=torch.int64, device=index.device)
        values.copy_(index)
    return Held(values, _is_mask(index))


def synchronize_blocking() -> None:
    """Blocks the host until the GPU is idle; no recording sees it."""
    torch._C._cuda_synchronize()


def _is_mask(index: torch.Tensor) -> bool:
    return index.dtype in (torch.bool, torch.uint8)
