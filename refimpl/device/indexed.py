"""The index of a statement, `(tensor, index, …)`, judged where it is written."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch

_MASKS = (torch.bool, torch.uint8)
_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64)


def checked(where: str, tensor: torch.Tensor, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index as integers, slices, None, `...`, tensors, and arrays in place of lists: a list of bools is a mask,
    and True and False are masks of no dimension, as PyTorch reads them.

    Args:
        where: Which entry it is, for the sentence.
        tensor: What it is an index of.
        index: One entry a place.
    Raises:
        TypeError: An entry is no index.
        IndexError: It does not fit the tensor, as far as that does not depend on values.
    """
    found = tuple(_entry(where, i) for i in index)
    if sum(i is Ellipsis for i in found) > 1:
        raise IndexError(f"{where}: the index has `...` twice: write it once")
    named = sum(dimensions(i) for i in found)
    if named > tensor.dim():
        raise IndexError(
            f"{where}: the index names {named} dimensions, and the tensor has {tensor.dim()}: leave some out"
        )
    _fit(where, tuple(tensor.shape), found, named)
    return found


def is_mask(entry: Any) -> bool:
    """Whether an entry of an index is a mask, of the host or of a device."""
    if isinstance(entry, torch.Tensor):
        return entry.dtype in _MASKS
    return isinstance(entry, np.ndarray) and entry.dtype in (np.bool_, np.uint8)


def dimensions(entry: Any) -> int:
    """How many dimensions of the tensor one entry of an index takes."""
    if entry is None or entry is Ellipsis:
        return 0
    return int(entry.ndim) if is_mask(entry) else 1


def shown(value: Any) -> str:
    """A value in a sentence; a tensor's are not asked for, since that would block the host."""
    return (
        repr(value) if value is None or isinstance(value, str | int | float | complex) else f"a {type(value).__name__}"
    )


def _entry(where: str, entry: Any) -> Any:
    if entry is None or entry is Ellipsis:
        return entry
    if isinstance(entry, slice):
        return _slice(where, entry)
    if isinstance(entry, torch.Tensor):
        if entry.dtype not in (*_MASKS, *_INTEGERS):
            raise TypeError(f"{where}: an index tensor of {entry.dtype} names no cells: use integers or bools")
        return entry
    if isinstance(entry, bool | np.bool_ | list | range | np.ndarray):
        return _array(where, entry)
    try:
        return operator.index(entry)
    except TypeError:
        raise TypeError(
            f"{where}: {shown(entry)} is no index: use an integer, a slice, None, `...`, a list or an index tensor"
        ) from None


def _slice(where: str, entry: slice) -> slice:
    parts = (entry.start, entry.stop, entry.step)
    if any(isinstance(part, torch.Tensor) and part.device.type != "cpu" for part in parts):
        raise TypeError(f"{where}: a slice with a tensor of the device would block the host: use numbers of the host")
    try:
        start, stop, step = (None if part is None else operator.index(part) for part in parts)
    except TypeError:
        raise TypeError(f"{where}: {entry!r} has a bound that is no integer: use integers") from None
    if step is not None and step < 1:
        raise IndexError(f"{where}: {entry!r} has a step of {step}: PyTorch slices forward, so use a positive step")
    return slice(start, stop, step)


def _array(where: str, entry: Any) -> Any:
    if isinstance(entry, list) and any(isinstance(one, torch.Tensor) for one in entry):
        raise TypeError(f"{where}: a list with tensors in it is no index: use integers, or one tensor")
    try:
        array = np.asarray(entry)
    except (TypeError, ValueError, RuntimeError):
        array = np.asarray(None)
    if array.size == 0 and isinstance(entry, list | range):
        array = array.astype(np.int64)
    if array.dtype != np.bool_ and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{where}: {shown(entry)} names no cells: use integers or bools, in rows of one length")
    return array


def _fit(where: str, sizes: tuple[int, ...], index: tuple[Any, ...], named: int) -> None:
    """Checks bounds of integers, shapes of masks, and that the shapes of the others broadcast."""
    shapes, dim = list[tuple[int, ...]](), 0
    for entry in index:
        if entry is Ellipsis:
            dim += len(sizes) - named
        elif is_mask(entry):
            shape, here = tuple(entry.shape), sizes[dim : dim + entry.ndim]
            if shape != here:
                raise IndexError(f"{where}: a mask of shape {shape} on dimensions of sizes {here}: give it their shape")
        elif isinstance(entry, int) and not -sizes[dim] <= entry < sizes[dim]:
            raise IndexError(f"{where}: {entry} is out of range in dimension {dim}, of size {sizes[dim]}")
        elif isinstance(entry, torch.Tensor | np.ndarray):
            shapes.append(tuple(entry.shape))
        dim += dimensions(entry)
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            f"{where}: index tensors of shapes {', '.join(map(str, shapes))} do not broadcast: give them one shape"
        ) from None
