"""Memory as the simulated device names it: buffers, and the byte ranges an op touches in them.

The allocator's seam: every device tensor's memory comes from `allocate`, with the stream that asks for it. Blocks are
not reused yet; a caching allocator that hands a freed block to the next request of its stream replaces this one
function and nothing else.
"""

from __future__ import annotations

from enum import Enum
from itertools import count, product
from typing import NamedTuple
from weakref import WeakSet

import torch
from torch.multiprocessing.reductions import StorageWeakRef

_ENUMERATED_RUNS = 64
_serials = count(1)


class Memory(Enum):
    """Where a buffer lives, which decides whether a copy of it can be asynchronous."""

    DEVICE = "device"
    PINNED = "pinned"
    PAGEABLE = "pageable"


class Buffer:
    """One allocation: views of one tensor share it, so two tensors alias where they have the same buffer.

    Args:
        bytes_: Size of the allocation in bytes.
        memory: Where it lives.
        stream_id: The stream it was allocated on; None for host memory.
    """

    __slots__ = ("__weakref__", "bytes", "memory", "recorded", "serial", "stream_id")

    def __init__(self, bytes_: int, memory: Memory, stream_id: int | None = None) -> None:
        self.serial = next(_serials)
        self.bytes = bytes_
        self.memory = memory
        self.stream_id = stream_id
        self.recorded: set[int] = set()
        if memory is Memory.DEVICE:
            _on_device.add(self)

    def __repr__(self) -> str:
        return f"Buffer({self.serial}, {self.memory.value}, {self.bytes} bytes)"


_on_device: WeakSet[Buffer] = WeakSet()


def device_bytes() -> int:
    """Size of all device memory that a tensor or a captured graph has."""
    return sum(buffer.bytes for buffer in _on_device)


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


def allocate(
    shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, stream_id: int
) -> tuple[torch.Tensor, Buffer]:
    """New device memory, zero as fresh memory of a GPU mostly is, so that a value read too early is the same in every
    run."""
    inner = torch.empty_strided(shape, stride, dtype=dtype, device="cpu")
    inner.zero_()
    return inner, Buffer(inner.untyped_storage().nbytes(), Memory.DEVICE, stream_id)


class HostBuffers:
    """The host buffers the device has met, by address: pinned ones are known from their allocation, others are
    pageable."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[StorageWeakRef, Buffer]] = {}

    def pinned(self, tensor: torch.Tensor) -> Buffer:
        """Makes the memory of a CPU tensor known as pinned."""
        return self._register(tensor.untyped_storage(), Memory.PINNED)

    def of(self, tensor: torch.Tensor) -> Buffer:
        """The buffer that a CPU tensor lies in."""
        return self.known(tensor) or self._register(tensor.untyped_storage(), Memory.PAGEABLE)

    def known(self, tensor: torch.Tensor) -> Buffer | None:
        """The buffer that a CPU tensor lies in, if it is pinned or the device has copied from or to it."""
        found = self._known.get(tensor.untyped_storage().data_ptr())
        return found[1] if found is not None and _alive(found[0]) else None

    def _register(self, storage: torch.UntypedStorage, memory: Memory) -> Buffer:
        if len(self._known) > 4096:
            self._known = {at: entry for at, entry in self._known.items() if _alive(entry[0])}
        buffer = Buffer(storage.nbytes(), memory)
        self._known[storage.data_ptr()] = (StorageWeakRef(storage), buffer)
        return buffer


def _alive(reference: StorageWeakRef) -> bool:
    """Whether the memory is still the one that was registered: another may have its address by now."""
    return not reference.expired()
