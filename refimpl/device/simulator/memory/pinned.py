"""Pinned host memory: a caching allocator that waits for the copies it knows of.

A block has a power of two of bytes, and is handed out again for the next request of its size, the last freed one first.
    A copy with `non_blocking=True` notes its stream on the block: when the last tensor in it is gone, the block waits
    until what is then queued on those streams has run. That protects memory which the program has dropped. It does not
    protect memory which the program still has: to change a buffer under a copy is a hazard as ever.

A block that was allocated in a graph capture is the graph's, and is not handed on. One from before, which the graph
    copies from or to, is handed on once its last tensor is gone, and the next replay copies what the new owner has.

Source: pytorch `aten/src/ATen/core/CachingHostAllocator.h` (`allocate`, `free`, `record_event`, `process_events`) and
    `aten/src/ATen/native/cuda/Copy.cu`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

from refimpl.device.simulator.memory.blocks import Block, Segment
from refimpl.device.simulator.memory.buffers import Buffer, HostBuffers, Memory
from refimpl.device.simulator.memory.layouts import layout_of
from refimpl.device.simulator.memory.seen import Device
from refimpl.device.simulator.memory.waits import Waits

Cache = dict[int, list["PinnedBlock"]]


class PinnedBlock(Block):
    """A block of pinned memory: a segment of its own.

    Args:
        bytes_: Its size.
        cache: Where it goes when it is free; None if it belongs to a graph.
    """

    __slots__ = ("cache",)

    def __init__(self, bytes_: int, cache: Cache | None) -> None:
        super().__init__(Segment(bytes_), 0)
        self.bytes, self.cache = bytes_, cache


class PinnedMemory:
    """All pinned memory.

    Args:
        device: The machine.
        known: Where a tensor's buffer is looked up by address.
    """

    def __init__(self, device: Device, known: HostBuffers) -> None:
        self._device, self._known = device, known
        self._cache: Cache = {}
        self._waits: Waits[PinnedBlock] = Waits(lambda id_: device.queue(id_).tail, per_stream=False)

    def allocate(
        self, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, values: torch.Tensor | None = None
    ) -> torch.Tensor:
        """A CPU tensor in pinned memory, which holds what the memory held.

        Its storage gives the block back when the last tensor in it is gone, NumPy's included.

        Args:
            shape, stride, dtype: Of the tensor.
            values: What it holds instead, put there before anybody knows the buffer.
        """
        layout = layout_of(shape, stride, dtype)
        if not layout.elements:
            empty = torch.empty_strided(shape, stride, dtype=dtype, device="cpu")
            self._known.pinned(empty, Buffer(0, Memory.PINNED))
            return empty
        block = self._block(layout.bytes)
        buffer = Buffer(layout.bytes, Memory.PINNED, block=block)
        lease = _lease_type(block.bytes).from_buffer(block.segment.view)
        lease.pinned, lease.buffer = self, buffer
        tensor = torch.frombuffer(lease, dtype=dtype, count=layout.elements)
        if not layout.flat:
            tensor = torch.empty(0, dtype=dtype, device="cpu").set_(tensor.untyped_storage(), 0, shape, stride)
        if values is not None:
            tensor.copy_(values)
        self._known.pinned(tensor, buffer)
        for observer in self._device.observers:
            observer.on_allocate(buffer)
        return tensor

    def copy_of(self, values: torch.Tensor) -> torch.Tensor:
        """A copy of a CPU tensor in pinned memory."""
        with no_dispatch():
            like = torch.empty_like(values, device="meta")
            return self.allocate(tuple(like.shape), like.stride(), values.dtype, values)

    def _block(self, bytes_: int) -> PinnedBlock:
        size = 1 << (bytes_ - 1).bit_length()
        capture = self._device.capture
        if capture is not None and capture.covers(self._device.current):
            return PinnedBlock(size, None)
        for block in self._waits.over():
            self._settle(block)
        try:
            return self._cache.get(size, []).pop()
        except IndexError:
            return PinnedBlock(size, self._cache)

    def lend(self, tensor: torch.Tensor, buffer: Buffer, non_blocking: bool) -> torch.Tensor:
        """The memory of a pinned tensor for a copy on the current stream, which does not keep its block from being
        freed.

        Args:
            tensor: The tensor.
            buffer: The buffer it lies in.
            non_blocking: The host goes on: the block waits for the copy when it is freed.
        """
        block = buffer.block
        if block is None:
            return tensor
        if non_blocking:
            buffer.recorded |= {self._device.current.id}
        dtype, offset = tensor.dtype, tensor.storage_offset()
        if not (offset or tensor.is_conj() or tensor.is_neg()):
            return block.tensor(layout_of(tuple(tensor.shape), tensor.stride(), dtype))
        flat = torch.frombuffer(block.segment.view[: buffer.bytes], dtype=dtype, count=buffer.bytes // dtype.itemsize)
        same = flat.as_strided(tensor.shape, tensor.stride(), offset)
        same = same.conj() if tensor.is_conj() else same
        return same._neg_view() if tensor.is_neg() else same

    def give_back(self, buffer: Buffer) -> None:
        """The last tensor in an allocation is gone."""
        block = buffer.block
        if isinstance(block, PinnedBlock):
            if block.cache is not None and buffer.recorded:
                self._waits.add(block, buffer.recorded)
            else:
                self._settle(block)
        for observer in self._device.observers:
            observer.on_free(buffer)

    def _settle(self, block: PinnedBlock) -> None:
        if block.cache is not None:
            block.cache.setdefault(block.bytes, []).append(block)

    def empty_cache(self) -> None:
        """Gives free blocks back to the system."""
        for block in self._waits.over():
            self._settle(block)
        self._cache.clear()

    @contextmanager
    def fresh_cache(self) -> Iterator[None]:
        """Inside, allocations begin with an empty cache."""
        cache, waits = self._cache, self._waits
        self._cache, self._waits = {}, self._waits.fresh()
        try:
            yield
        finally:
            self._waits.all()
            self._cache.clear()
            self._cache, self._waits = cache, waits


@cache
def _lease_type(bytes_: int) -> Any:
    """What a storage of pinned memory holds, and lets go of when it dies: the right to the block."""

    class Lease(ctypes.c_char * bytes_):  # type: ignore[misc]
        pinned: PinnedMemory
        buffer: Buffer

        def __del__(self) -> None:
            self.pinned.give_back(self.buffer)

    return Lease
