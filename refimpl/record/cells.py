"""The cells of a tensor that index tensors name: from their values to few byte ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from refimpl.device.indexed import dimensions, is_mask
from refimpl.device.simulator.memory.buffers import accesses
from refimpl.device.stated import Along, Index, Leading, Stated
from refimpl.record.work import Access, Buffer

MOST_RUNS = 1024
"""Byte ranges that one index may come to: beyond it, the runs with the least gaps between them are joined."""
_MOST_EXPANDED = 1 << 20

Offsets = NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """How a tensor lies in its buffer: sizes, strides and offset in bytes."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    item: int

    @staticmethod
    def of(tensor: torch.Tensor) -> Shape:
        """The shape of a tensor."""
        item = tensor.element_size()
        strides = tuple(step * item for step in tensor.stride())
        return Shape(tuple(tensor.shape), strides, int(tensor.storage_offset()) * item, item)


class Cells:
    """What an index touches of a buffer, known once the values of its index tensors are.

    Args:
        buffer: The buffer.
        shape: How the tensor lies in it.
        whole: What the tensor touches as a whole, which stands until the values are known.
    Attributes:
        widened: Bytes that are not touched are counted in.
    """

    def __init__(self, buffer: Buffer, shape: Shape, whole: tuple[Access, ...]) -> None:
        self.buffer, self.shape = buffer, shape
        self.widened = True
        self._ranges = whole

    def settle(self, index: Index | None) -> None:
        """Takes the values: the index, with numpy arrays in place of tensors; None leaves the tensor as a whole.

        Raises:
            IndexError: A statement names cells that the tensor does not have.
        """
        if index is None:
            return
        if isinstance(index, Stated):
            _refuse_outside(self.shape, index)
        offsets, length, exact = _runs(self.shape, index)
        starts, lengths, joined = _joined(offsets, length)
        self._ranges = tuple(
            Access(self.buffer, start, size, rows, stride) for start, size, rows, stride in _strided(starts, lengths)
        )
        self.widened = joined or not exact

    @property
    def ranges(self) -> tuple[Access, ...]:
        """The bytes."""
        return self._ranges


def whole(buffer: Buffer, tensor: torch.Tensor) -> tuple[Access, ...]:
    """All bytes of a tensor that lies in `buffer`."""
    found: Any = accesses
    return tuple(Access(buffer, *access[1:]) for access in found(buffer, tensor))


def _runs(shape: Shape, index: Index) -> tuple[Offsets, int, bool]:
    """Offsets of equally long runs of bytes, their length, and whether that is exact."""
    if isinstance(index, Leading):
        counted = np.arange(index.index.shape[1]) < np.asarray(index.counts)[:, None]
        index = (index.index[counted],)
    picked, rest = _along(shape, index) if isinstance(index, Along) else _indexed(shape, index)
    length, dims = shape.item, list[tuple[int, int]]()
    for stride, size in sorted((stride, size) for size, stride in rest if size > 1 and stride):
        if not dims and stride <= length:
            length += stride * (size - 1)
        else:
            dims.append((size, stride))
    if any(size == 0 for size, _ in rest):
        return np.zeros(0, np.int64), length, True
    exact = len(picked) * prod(size for size, _ in dims) <= _MOST_EXPANDED
    if not exact:
        length += sum((size - 1) * stride for size, stride in dims)
        dims = []
    offsets = np.unique(picked)
    for size, stride in dims:
        offsets = (offsets[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    return np.unique(offsets), length, exact


def _along(shape: Shape, index: Along) -> tuple[Offsets, list[tuple[int, int]]]:
    """The byte offsets that `gather` picks, and no dimension left."""
    values = np.asarray(index.index)
    parts = np.ix_(*(np.arange(size) for size in values.shape)) if values.ndim else ()
    offsets = np.full(values.shape, shape.offset, np.int64)
    for dim, stride in enumerate(shape.strides):
        offsets = offsets + (values.astype(np.int64) if dim == index.dim else parts[dim]) * stride
    return offsets.reshape(-1), []


def _indexed(shape: Shape, index: tuple[Any, ...]) -> tuple[Offsets, list[tuple[int, int]]]:
    """The byte offsets that integers and index tensors name, and the (size, stride) of the other dimensions."""
    offset, rest = shape.offset, list[tuple[int, int]]()
    arrays = list[Offsets]()
    for dim, i in _placed(shape, index):
        if is_mask(i):
            arrays.append(_offsets_of_mask(i, shape.strides[dim : dim + i.ndim]))
            continue
        size, stride = shape.sizes[dim], shape.strides[dim]
        if isinstance(i, slice):
            begin, end, step = i.indices(size)
            rest.append((len(range(begin, end, step)), stride * step))
            offset += stride * begin
        else:
            values = np.asarray(i, dtype=np.int64)
            arrays.append(np.where(values < 0, values + size, values) * stride)
    picked = sum(np.broadcast_arrays(*arrays), np.zeros((), np.int64)) if arrays else np.zeros((), np.int64)
    return np.asarray(picked).reshape(-1) + offset, rest


def _placed(shape: Shape, index: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
    """The entries of an index that name cells, each with the first dimension that it takes; what is not named is taken
    whole."""
    named = sum(dimensions(i) for i in index)
    at = next((k for k, i in enumerate(index) if i is Ellipsis), len(index))
    filled = (*index[:at], *[slice(None)] * (len(shape.sizes) - named), *index[at + 1 :])
    dim = 0
    for i in filled:
        if i is not None:
            yield dim, i
        dim += dimensions(i)


def _offsets_of_mask(mask: Any, strides: tuple[int, ...]) -> Offsets:
    """The byte offsets that a mask names; one without dimensions names all or nothing."""
    if mask.ndim == 0:
        return np.zeros(int(bool(mask)), np.int64)
    found = np.nonzero(mask)
    return np.asarray(sum((part * step for part, step in zip(found, strides, strict=True)), np.zeros((), np.int64)))


def _refuse_outside(shape: Shape, index: Stated) -> None:
    """Raises where values of a statement's index tensors, known now, do not fit."""
    counts = list[tuple[int, ...]]()
    for dim, i in _placed(shape, index):
        if isinstance(i, np.ndarray) and not is_mask(i):
            size = shape.sizes[dim]
            wrong = i[(i < -size) | (i >= size)]
            if wrong.size:
                raise IndexError(f"{index.where}: {wrong[0]} is out of range in dimension {dim}, of size {size}")
            counts.append(i.shape)
        elif is_mask(i):
            counts.append((int(np.count_nonzero(i)),))
    try:
        np.broadcast_shapes(*counts)
    except ValueError:
        raise IndexError(
            f"{index.where}: masks and index tensors name {', '.join(map(str, counts))} cells, which do not broadcast"
        ) from None


def _joined(offsets: Offsets, length: int) -> tuple[Offsets, Offsets, bool]:
    """Starts and lengths of the runs, those that touch as one, and whether there were too many to keep apart."""
    if not len(offsets):
        return offsets, offsets, False
    gaps = np.diff(offsets) - length
    cuts = np.flatnonzero(gaps > 0)
    many = len(cuts) >= MOST_RUNS
    if many:
        cuts = np.sort(cuts[np.argsort(gaps[cuts], kind="stable")[-(MOST_RUNS - 1) :]])
    starts = offsets[np.concatenate(([0], cuts + 1))]
    ends = offsets[np.concatenate((cuts, [len(offsets) - 1]))] + length
    return starts, ends - starts, many


def _strided(starts: Offsets, lengths: Offsets) -> list[tuple[int, int, int, int]]:
    """Runs as (start, length, rows, stride): equal runs at equal distances are one range."""
    found = list[tuple[int, int, int, int]]()
    runs: Sequence[tuple[int, int]] = list(zip(starts.tolist(), lengths.tolist(), strict=True))
    at = 0
    while at < len(runs):
        start, length = runs[at]
        rows, stride = 1, 0
        if at + 1 < len(runs) and runs[at + 1][1] == length:
            stride = runs[at + 1][0] - start
            while at + rows < len(runs) and runs[at + rows] == (start + rows * stride, length):
                rows += 1
        found.append((start, length, rows, stride))
        at += rows
    return found
