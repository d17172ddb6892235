"""What an op would write, worked out beside the memory that it writes, so that it can land piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from refimpl.device.simulator.ops import Landing

_ALIGNMENT = 16
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class _Span(NamedTuple):
    """A stretch of one storage that is written, and its copy.

    Args:
        begin, end: Addresses.
        word: Size in bytes of what lands at once: an element, or 8 bytes of a longer one.
        memory, twin: The bytes, and those of the copy.
    """

    begin: int
    end: int
    word: int
    memory: torch.Tensor
    twin: torch.Tensor


class Twins:
    """Copies of the memory that an op writes. The op computes in the copies; what differs then is what it has written.

    An element that comes out with the bytes that it had is not stored: the device's memory shows no difference until
    somebody else writes there in between, and such a write then counts as the later one.

    Args:
        written: The CPU tensors that the op writes; they may overlap.
    """

    def __init__(self, written: Iterable[torch.Tensor]) -> None:
        self._spans = _spans([t for t in written if t.numel()])

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """What the op gets in place of `tensor`: its twin, or itself where the op does not write it."""
        begin, end = _extent(tensor)
        for span in self._spans:
            if span.begin <= begin and end <= span.end and tensor.numel():
                twin = torch.empty(0, dtype=tensor.dtype, device="cpu")
                offset = (begin - span.begin) // tensor.element_size()
                twin.set_(span.twin.untyped_storage(), offset, tensor.shape, tensor.stride())
                twin = twin.conj() if tensor.is_conj() else twin
                return torch._neg_view(twin) if tensor.is_neg() else twin
        return tensor

    def landing(self, pieces: int) -> Landing:
        """Stores what differs now: each piece an equal part of each span's elements, in the order of memory."""
        changes = []
        for span in self._spans:
            memory, twin = (t.view(_WORDS[span.word]) for t in (span.memory, span.twin))
            places = (memory != twin).nonzero().flatten()
            changes.append((memory, places, twin[places]))

        def land(piece: int) -> None:
            for memory, places, values in changes:
                part = slice(len(places) * piece // pieces, len(places) * (piece + 1) // pieces)
                memory[places[part]] = values[part]

        return land


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses between which the elements of a tensor lie."""
    begin = tensor.data_ptr()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return begin, begin + (last + 1) * tensor.element_size()


def _spans(written: Sequence[torch.Tensor]) -> list[_Span]:
    """One span for tensors that overlap, so that they share a twin as they share memory."""
    spans: list[_Span] = []
    group: list[torch.Tensor] = []
    end = base = 0
    for tensor in sorted(written, key=lambda t: (t.untyped_storage().data_ptr(), t.data_ptr())):
        first, last = _extent(tensor)
        if group and (tensor.untyped_storage().data_ptr() != base or first >= end):
            spans.append(_span(group, end))
            group, end = [], 0
        group.append(tensor)
        end, base = max(end, last), tensor.untyped_storage().data_ptr()
    return [*spans, _span(group, end)] if group else spans


def _span(group: Sequence[torch.Tensor], end: int) -> _Span:
    """The span of tensors of one storage, sorted by address; it begins at an address that suits every dtype."""
    storage = group[0].untyped_storage()
    offset = (group[0].data_ptr() - storage.data_ptr()) // _ALIGNMENT * _ALIGNMENT
    begin = storage.data_ptr() + offset
    memory = torch.empty(0, dtype=torch.uint8, device="cpu")
    memory.set_(storage, offset, (end - begin,), (1,))
    return _Span(begin, end, min(8, *(t.element_size() for t in group)), memory, memory.clone())
