"""Memory as the simulated device names it: buffers, and the byte ranges an op touches in them.

Where memory comes from is for `allocator` and `pinned`; a buffer says which allocation it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from itertools import count, product
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

if TYPE_CHECKING:
    from refimpl.device.simulator.memory.blocks import Block

_ENUMERATED_RUNS = 64
_NOBODY: frozenset[int] = frozenset()
_serials = count(1)


class Memory(Enum):
    """Where a buffer lives, which decides whether a copy of it can be asynchronous."""

    DEVICE = "device"
    PINNED = "pinned"
    PAGEABLE = "pageable"


class Buffer:
    """The identity of one allocation: views of one tensor share it, so two tensors alias where they have the same
    buffer.

    It keeps no memory. The tensors of an allocation do, and when the last is gone its block is handed on, while those
    who hold the buffer can still tell it from the next.

    Args:
        bytes_: Size of the allocation in bytes, as it was asked for.
        memory: Where it lives.
        stream_id: The stream it was allocated on; None for host memory.
        block: The block of memory that it lies in: two buffers in one block are successive owners of it. None for
            pageable memory, and where there are no bytes.
    Attributes:
        serial: Tells buffers apart.
        recorded: The other streams that use it, as `record_stream` or a copy told.
    """

    __slots__ = ("__weakref__", "block", "bytes", "memory", "recorded", "serial", "stream_id")

    def __init__(self, bytes_: int, memory: Memory, stream_id: int | None = None, block: Block | None = None) -> None:
        self.serial = next(_serials)
        self.bytes = bytes_
        self.memory = memory
        self.stream_id = stream_id
        self.block = block
        self.recorded: frozenset[int] = _NOBODY

    def __repr__(self) -> str:
        return f"Buffer({self.serial}, {self.memory.value}, {self.bytes} bytes)"


class Access(NamedTuple):
    """`rows` runs of `length` bytes, `stride` bytes apart, from `offset` in `buffer`."""

    buffer: Buffer
    offset: int
    length: int
    rows: int = 1
    stride: int = 0


def accesses(buffer: Buffer, tensor: torch.Tensor) -> tuple[Access, ...]:
    """The bytes of `buffer` that a whole read or write of `tensor` touches; exact up to 64 strided blocks, then their
    hull.

    A column of a table is not the table: two ops on different columns must not look like a conflict.

    Args:
        buffer: The buffer `tensor` lies in.
        tensor: Any strided tensor, on the CPU as the simulation holds it.
    Returns:
        No access for an empty tensor, one in most cases, several where three or more strides remain.
    """
    if tensor.numel() == 0:
        return ()
    item = tensor.element_size()
    length, dims = _merged(tensor, item)
    start = int(tensor.storage_offset()) * item
    if not dims:
        return (Access(buffer, start, length),)
    *outer, (rows, stride) = dims
    if not outer:
        return (Access(buffer, start, length, rows, stride),)
    blocks = 1
    for size, _ in outer:
        blocks *= size
    if blocks > _ENUMERATED_RUNS:
        return (Access(buffer, start, length + sum((size - 1) * step for size, step in dims)),)
    offsets = (
        sum(i * step for i, (_, step) in zip(at, outer, strict=True)) for at in product(*(range(n) for n, _ in outer))
    )
    return tuple(Access(buffer, start + offset, length, rows, stride) for offset in offsets)


def _merged(tensor: torch.Tensor, item: int) -> tuple[int, list[tuple[int, int]]]:
    """The length of one contiguous run in bytes, and (size, stride in bytes) of what repeats it, outermost first."""
    pairs = sorted(
        ((step * item, size) for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size > 1 and step),
        key=lambda p: p[0],
    )
    length, dims = item, list[tuple[int, int]]()
    for step, size in pairs:
        if not dims and step <= length:
            length += step * (size - 1)
        elif dims and step == dims[0][0] * dims[0][1]:
            dims[0] = (dims[0][0] * size, dims[0][1])
        else:
            dims.insert(0, (size, step))
    return length, dims


def span(shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> tuple[int, int]:
    """The elements, and the bytes, from the first to the last that a tensor has; gaps between them count.

    Example:
        >>> span((2, 2), (4, 1), torch.float32)
        (6, 24)
    """
    elements = 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, stride, strict=True))
    return elements, elements * dtype.itemsize


def meet(tensor: torch.Tensor, others: Iterable[torch.Tensor]) -> bool:
    """Whether bytes between the first and the last of a tensor lie between those of one of the others.

    Example:
        >>> x = torch.zeros(4)
        >>> meet(x[:2], [x[2:]]), meet(x[:2], [x[::2]])
        (False, True)
    """
    begin, end = _addresses(tensor)
    return any(begin < last and first < end for first, last in map(_addresses, others))


def _addresses(tensor: torch.Tensor) -> tuple[int, int]:
    begin = tensor.data_ptr()
    return begin, begin + span(tuple(tensor.shape), tensor.stride(), tensor.dtype)[1]


class HostBuffers:
    """The host buffers the device has met, by address: pinned ones are known from their allocation, others are
    pageable."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[StorageWeakRef, Buffer]] = {}

    def pinned(self, tensor: torch.Tensor, buffer: Buffer) -> None:
        """Makes the memory of a CPU tensor known as pinned."""
        self._register(tensor.untyped_storage(), buffer)

    def of(self, tensor: torch.Tensor) -> Buffer:
        """The buffer that a CPU tensor lies in."""
        found = self.known(tensor)
        if found is None:
            storage = tensor.untyped_storage()
            found = Buffer(storage.nbytes(), Memory.PAGEABLE)
            self._register(storage, found)
        return found

    def known(self, tensor: torch.Tensor) -> Buffer | None:
        """The buffer that a CPU tensor lies in, if it is pinned or the device has copied from or to it."""
        found = self._known.get(tensor.untyped_storage().data_ptr())
        return found[1] if found is not None and _alive(found[0]) else None

    def _register(self, storage: torch.UntypedStorage, buffer: Buffer) -> None:
        if len(self._known) > 4096:
            self._known = {at: entry for at, entry in self._known.items() if _alive(entry[0])}
        self._known[storage.data_ptr()] = (StorageWeakRef(storage), buffer)


def _alive(reference: StorageWeakRef) -> bool:
    """Whether the memory is still the one that was registered: another may have its address by now."""
    return not reference.expired()
