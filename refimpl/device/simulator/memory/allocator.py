"""The device's memory: a caching allocator in the order of the streams, as PyTorch has one for CUDA.

A tensor's block goes back to the free blocks of the stream it was allocated on at the moment at which the host drops
    the tensor, though ops that use it may still be queued. The next allocation of that stream may get it at once, which
    is safe on that stream, since its ops run in order. A use on another stream reads the new owner's bytes, unless the
    streams were ordered, or `record_stream` told the allocator to wait for that use.

The rules: sizes are rounded to 512 bytes. Requests up to 1 MiB are cut from segments of 2 MiB, up to 10 MiB from
    segments of 20 MiB, larger ones have a segment of their own. The smallest free block that fits is taken, and cut if
    enough is left over; free neighbours are put together. In a graph capture the memory comes from a pool of that graph
    or of several, which nothing else allocates from.

Unlike CUDA's: a segment is zero when it is new. Each run of a schedule begins with an empty cache, so that it can be
    replayed to the byte. A graph's pool goes back to the system when its last graph and tensor are gone, and not only
    when the cache is emptied. A graph that outlives the memory it was captured on reads the old bytes where CUDA would
    fault.

Source: pytorch `c10/cuda/CUDACachingAllocator.cpp` (`malloc`, `free`, `recordStream`, `process_events`,
    `insert_events`, `beginAllocateToPool`, `releasePool`).
"""

from __future__ import annotations

import atexit
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

import torch

from refimpl.device.simulator.memory.blocks import Block, Segment
from refimpl.device.simulator.memory.buffers import Buffer, Memory
from refimpl.device.simulator.memory.free_blocks import FreeBlocks, Pool
from refimpl.device.simulator.memory.graph_pools import GraphPools
from refimpl.device.simulator.memory.layouts import Layout, segment_bytes
from refimpl.device.simulator.memory.seen import Device
from refimpl.device.simulator.memory.usage import Usage
from refimpl.device.simulator.memory.waits import Waits
from refimpl.device.simulator.ops import HostKind


class Lease:
    """The right to one allocation, which all views of a tensor share: when the last of them is gone, the block is
    free.

    Args:
        memory: Takes the block back.
        buffer: The allocation. It says which one, and holds no right to it.
    """

    __slots__ = ("_memory", "buffer")

    def __init__(self, memory: DeviceMemory, buffer: Buffer) -> None:
        self._memory, self.buffer = memory, buffer

    def record_stream(self, stream_id: int) -> None:
        """`stream_id` uses this memory too: the block is not handed on before what is queued there when the tensor
        dies has run."""
        self._memory.record_stream(self.buffer, stream_id)

    def __del__(self) -> None:
        self._memory.give_back(self.buffer)


class DeviceMemory:
    """All memory of the device.

    Args:
        device: The machine.
    Attributes:
        small, large, all: What tensors have of it, by class of sizes.
        graph_pools: What graph captures allocate from.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._pools: WeakSet[Pool] = WeakSet()
        self._cache = self._pool(of_graphs=False)
        self.graph_pools = GraphPools(lambda: self._pool(of_graphs=True), self._retire)
        self._waits: Waits[Block] = Waits(lambda id_: device.queue(id_).tail, per_stream=True)
        self._after_capture: list[Buffer] = []
        self._returned: deque[Buffer | Pool] = deque()
        self._busy = False
        self.small, self.large, self.all = Usage(), Usage(), Usage()
        atexit.register(self._close)

    def allocate(self, layout: Layout) -> tuple[torch.Tensor, Lease]:
        """A CPU tensor in memory of the current stream, which holds what the memory held, and the right to it."""
        device, requested = self._device, layout.bytes
        stream_id = device.current.id
        if not requested:
            empty = torch.empty_strided(layout.shape, layout.stride, dtype=layout.dtype, device="cpu")
            return empty, Lease(self, Buffer(0, Memory.DEVICE, stream_id))
        self._busy = True
        try:
            block = self._block(stream_id, layout.block_bytes, layout.small)
        finally:
            self._busy = False
        if self._returned:
            self._take_back()
        bytes_ = block.bytes
        (self.small if layout.small else self.large).allocate(bytes_, requested)
        self.all.allocate(bytes_, requested)
        buffer = Buffer(requested, Memory.DEVICE, stream_id, block)
        for observer in device.observers:
            observer.on_allocate(buffer)
        return block.tensor(layout), Lease(self, buffer)

    def _block(self, stream_id: int, size: int, small: bool) -> Block:
        capture = self._device.capture
        if capture is None:
            if self._after_capture or self._waits:
                self._look()
            pool = self._cache
        else:
            pool = capture.pool if capture.covers(self._device.current) else self._cache
        free = pool.free(stream_id, small)
        block = free.take(size)
        if block is None:
            free.add(self._segment(segment_bytes(size), small))
            block = free.take(size)
        assert block is not None
        return block

    def _segment(self, bytes_: int, small: bool) -> Segment:
        segment = Segment(bytes_)
        for usage in (self.small if small else self.large, self.all):
            usage.reserve(bytes_)
        return segment

    def record_stream(self, buffer: Buffer, stream_id: int) -> None:
        """Notes that a stream uses an allocation; the stream that it was allocated on counts for nothing."""
        for observer in self._device.observers:
            observer.on_record_stream(buffer, stream_id)
        if stream_id != buffer.stream_id and buffer.block is not None:
            buffer.recorded |= {stream_id}

    def give_back(self, buffer: Buffer) -> None:
        """The last tensor in an allocation is gone. Python may collect garbage while the lists are being changed: it
        has to wait then until they are whole."""
        if self._busy:
            self._returned.append(buffer)
            return
        self._busy = True
        try:
            self._free(buffer)
        finally:
            self._busy = False
        if self._returned:
            self._take_back()

    def _take_back(self) -> None:
        with self._lists():
            while self._returned:
                back = self._returned.popleft()
                if isinstance(back, Pool):
                    self._release(back)
                else:
                    self._free(back)

    @contextmanager
    def _lists(self) -> Iterator[None]:
        """Inside, the lists are being changed."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self._returned:
            self._take_back()

    def _free(self, buffer: Buffer) -> None:
        block = buffer.block
        if block is None or (home := block.home) is None:
            return
        bytes_, requested = block.bytes, buffer.bytes
        (self.small if home.small else self.large).free(bytes_, requested)
        self.all.free(bytes_, requested)
        if buffer.recorded:
            self._wait(home, block, buffer)
        elif home.pool.retired:
            self._give_to_retired(home, block)
        else:
            home.give(block)
        for observer in self._device.observers:
            observer.on_free(buffer)

    def _wait(self, home: FreeBlocks, block: Block, buffer: Buffer) -> None:
        """A block comes back when the streams are done that were recorded for it."""
        for usage in (self.small if home.small else self.large, self.all):
            usage.wait(block.bytes)
        if self._device.capture is not None:
            self._after_capture.append(buffer)
        else:
            self._waits.add(block, buffer.recorded)

    def _settle(self, block: Block) -> None:
        """Makes a block that waited free to be handed out."""
        home = block.home
        assert home is not None
        for usage in (self.small if home.small else self.large, self.all):
            usage.settle(block.bytes)
        if home.pool.retired:
            self._give_to_retired(home, block)
        else:
            home.give(block)

    def _give_to_retired(self, home: FreeBlocks, block: Block) -> None:
        block = home.merge(block)
        if not block.split:
            self._drop(home, block)

    def _drop(self, home: FreeBlocks, block: Block) -> None:
        for usage in (self.small if home.small else self.large, self.all):
            usage.release(block.bytes)
        home.drop(block)

    def _look(self) -> None:
        """Takes back what waited for streams that are done by now."""
        for buffer in self._after_capture:
            if buffer.block is not None:
                self._waits.add(buffer.block, buffer.recorded)
        self._after_capture.clear()
        for block in self._waits.over():
            self._settle(block)

    def empty_cache_blocking(self) -> None:
        """Gives free segments back to the system. The host blocks until the streams that freed blocks wait for are
        done."""
        if self._after_capture or self._waits:
            self._device.refuse_in_capture("emptying the cache while freed blocks wait for a stream")
            with self._lists():
                self._look()
            for op in self._waits.pending():
                self._device.block(op, HostKind.STREAM_SYNCHRONIZE, op.queue)
        with self._lists():
            self._look()
            self._release(self._cache)

    def _release(self, pool: Pool) -> None:
        for home in pool.lists():
            for block in home.blocks():
                if not block.split:
                    self._drop(home, block)

    def _pool(self, of_graphs: bool) -> Pool:
        pool = Pool(of_graphs)
        self._pools.add(pool)
        return pool

    def _retire(self, pool: Pool) -> None:
        """Nobody allocates from `pool` any more: its memory goes back to the system as it gets free."""
        pool.retired = True
        self._returned.append(pool)
        if not self._busy:
            self._take_back()

    @contextmanager
    def fresh_cache(self) -> Iterator[None]:
        """Inside, allocations begin with an empty cache, so that what they find in memory depends on nothing that
        came before. When it ends the device is idle, or has dropped what was queued."""
        cache, waits = self._cache, self._waits
        self._cache, self._waits = self._pool(of_graphs=False), self._waits.fresh()
        try:
            yield
        finally:
            with self._lists():
                self._look()
                for block in self._waits.all():
                    self._settle(block)
            self._retire(self._cache)
            self._cache, self._waits = cache, waits

    def inactive_splits(self) -> list[tuple[Block, bool]]:
        """The free blocks in segments of which a part is in use, each with whether it is of the small class."""
        homes = [home for pool in self._pools for home in pool.lists()]
        return [(block, home.small) for home in homes for block in home.blocks() if block.split]

    def _close(self) -> None:
        """At the end of the process nothing is handed out any more."""
        self._busy = True
