"""Blocks of memory: segments of the process's own memory, cut into blocks and put together again.

The rules and the sizes are those of PyTorch's caching allocator for CUDA, without its options.

Source: pytorch `c10/cuda/CUDACachingAllocator.cpp` (`round_size`, `get_allocation_size`, `get_free_block`,
    `should_split`, `try_merge_blocks`).
"""

from __future__ import annotations

import mmap
from bisect import bisect_left, insort
from functools import lru_cache
from itertools import count
from typing import NamedTuple

import torch

from refimpl.device.simulator.buffers import span

LEAST_BYTES = 512
"""Every block's size is a multiple of this."""
SMALL_BYTES = 1 << 20
"""Requests up to this size are small, and have lists and segments of their own."""
_SMALL_SEGMENT_BYTES = 2 << 20
_LARGE_SEGMENT_BYTES = 20 << 20
_OWN_SEGMENT_BYTES = 10 << 20
_SEGMENT_STEP_BYTES = 2 << 20
_segments, _blocks = count(1), count(1)


def rounded(bytes_: int) -> int:
    """The size of the block that a request of `bytes_` needs.

    Example:
        >>> rounded(1), rounded(512), rounded(513)
        (512, 512, 1024)
    """
    return max(LEAST_BYTES, -(-bytes_ // LEAST_BYTES) * LEAST_BYTES)


def segment_bytes(size: int) -> int:
    """The size of the segment that is made for a block of `size` bytes, where no free one fits."""
    if size <= SMALL_BYTES:
        return _SMALL_SEGMENT_BYTES
    if size < _OWN_SEGMENT_BYTES:
        return _LARGE_SEGMENT_BYTES
    return -(-size // _SEGMENT_STEP_BYTES) * _SEGMENT_STEP_BYTES


class Layout(NamedTuple):
    """What a tensor needs of memory.

    Args:
        shape, stride, dtype: The tensor's.
        elements, bytes: From its first to its last.
        block_bytes: The size of the block.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    elements: int
    bytes: int
    block_bytes: int


@lru_cache(maxsize=8192)
def layout_of(shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> Layout:
    """The layout of a tensor; the same object while it is remembered."""
    elements, bytes_ = span(shape, stride, dtype)
    return Layout(shape, stride, dtype, elements, bytes_, rounded(bytes_))


class Segment:
    """One piece of memory from the system, zero at first; whoever holds a tensor in it keeps the memory.

    Args:
        bytes_: Its size.
    Raises:
        torch.OutOfMemoryError: The system has no more.
    Attributes:
        serial: Place in the order in which segments were made, which stands for the address: the system's own are not
            the same in every run.
        view: The memory; empty after `release`.
    """

    __slots__ = ("_at", "bytes", "serial", "view")

    def __init__(self, bytes_: int) -> None:
        self.serial, self.bytes = next(_segments), bytes_
        try:
            memory = mmap.mmap(-1, bytes_, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, ValueError, OverflowError) as error:
            raise torch.OutOfMemoryError(
                f"sim: {bytes_} bytes of memory are more than this machine gives: use smaller tensors"
            ) from error
        self.view = memoryview(memory)
        self._at: dict[int, Block] = {}

    def at(self, offset: int) -> Block:
        """The block that begins at `offset`: the same one each time that the segment is cut there."""
        found = self._at.get(offset)
        if found is None:
            found = self._at[offset] = Block(self, offset)
        return found

    def release(self) -> None:
        """Lets go of the memory, which lasts until the last tensor in it is gone."""
        self.view = memoryview(b"")
        for block in self._at.values():
            block.forget()
        self._at.clear()


class Block:
    """One piece of a segment. Two buffers that lie in one block are successive owners of it.

    Attributes:
        serial: Tells blocks apart.
        segment, offset: Where it begins. After a cut or a merge blocks that begin elsewhere have bytes of it too.
        bytes: Its present size.
        free: It is in a list, to be handed out.
        waits: Number of streams whose use of it, as `record_stream` told, is not over; it was freed.
        home: The list that it goes back to.
        previous, next: Its neighbours in the segment.
    """

    __slots__ = (
        "_layout",
        "_tensor",
        "bytes",
        "free",
        "home",
        "next",
        "offset",
        "previous",
        "segment",
        "serial",
        "waits",
    )

    def __init__(self, segment: Segment, offset: int) -> None:
        self.serial = next(_blocks)
        self.segment, self.offset = segment, offset
        self.bytes = self.waits = 0
        self.free = False
        self.previous: Block | None = None
        self.next: Block | None = None
        self.home: FreeBlocks | None = None
        self._layout: Layout | None = None
        self._tensor: torch.Tensor | None = None

    def tensor(self, layout: Layout) -> torch.Tensor:
        """A CPU tensor of this layout in the block. The last one is kept, since a loop asks for the same again."""
        if layout is self._layout and self._tensor is not None:
            return self._tensor
        part = self.segment.view[self.offset : self.offset + layout.bytes]
        tensor = torch.frombuffer(part, dtype=layout.dtype, count=layout.elements)
        if layout.shape != (layout.elements,) or layout.stride != (1,):
            tensor = tensor.as_strided(layout.shape, layout.stride)
        if not torch.is_inference_mode_enabled():
            self._layout, self._tensor = layout, tensor
        return tensor

    def forget(self) -> None:
        """Lets go of the tensor that was kept."""
        self._layout = self._tensor = None

    @property
    def split(self) -> bool:
        """It is a part of its segment."""
        return self.previous is not None or self.next is not None

    def __repr__(self) -> str:
        return f"Block({self.serial}, segment {self.segment.serial} at {self.offset}, {self.bytes} bytes)"


class FreeBlocks:
    """The free blocks of one stream and one class of sizes, which never go to another.

    Args:
        pool: Whose list it is.
        small: It is of the small class.
    """

    __slots__ = ("_entries", "pool", "small")

    def __init__(self, pool: Pool, small: bool) -> None:
        self.pool, self.small = pool, small
        self._entries: list[tuple[int, int, int, Block]] = []

    def take(self, size: int) -> Block | None:
        """The smallest free block of `size` bytes or more, the first in memory where several are; what is too much of
        it is cut off and stays free."""
        entries = self._entries
        at = bisect_left(entries, (size,))
        if at == len(entries):
            return None
        block = entries.pop(at)[3]
        block.free = False
        rest = block.bytes - size
        if rest >= LEAST_BYTES if self.small else rest > SMALL_BYTES:
            self._cut(block, size)
        return block

    def add(self, segment: Segment) -> None:
        """Makes all of a new segment free."""
        block = segment.at(0)
        block.bytes, block.home = segment.bytes, self
        self._insert(block)

    def give(self, block: Block) -> Block:
        """Takes a block back, and puts it together with its free neighbours.

        Returns:
            The free block that has its bytes now.
        """
        after = block.next
        if after is not None and after.free:
            self._remove(after)
            self._join(block, after)
        before = block.previous
        if before is not None and before.free:
            self._remove(before)
            self._join(before, block)
            block = before
        self._insert(block)
        return block

    def drop(self, block: Block) -> None:
        """Lets go of a free block that is its whole segment."""
        self._remove(block)
        block.segment.release()

    def blocks(self) -> list[Block]:
        """The free blocks, the smallest first."""
        return [entry[3] for entry in self._entries]

    def _cut(self, block: Block, size: int) -> None:
        rest = block.segment.at(block.offset + size)
        rest.bytes, rest.home = block.bytes - size, self
        rest.previous, rest.next = block, block.next
        if block.next is not None:
            block.next.previous = rest
        block.next, block.bytes = rest, size
        self._insert(rest)

    def _join(self, block: Block, after: Block) -> None:
        block.bytes += after.bytes
        block.next = after.next
        if after.next is not None:
            after.next.previous = block
        after.previous = after.next = None

    def _insert(self, block: Block) -> None:
        block.free = True
        insort(self._entries, (block.bytes, block.segment.serial, block.offset, block))

    def _remove(self, block: Block) -> None:
        block.free = False
        del self._entries[bisect_left(self._entries, (block.bytes, block.segment.serial, block.offset))]


class Pool:
    """The free lists of one origin of memory: the device's cache, or what a graph's captures allocate from.

    Args:
        of_graphs: Captures allocate from it, and replays use all of it again.
    Attributes:
        retired: Nobody allocates from it any more, so what is free of it goes back to the system.
        uses: Graphs that allocate from it, or have.
    """

    __slots__ = ("__weakref__", "_large", "_small", "of_graphs", "retired", "uses")

    def __init__(self, of_graphs: bool) -> None:
        self.of_graphs = of_graphs
        self._small: dict[int, FreeBlocks] = {}
        self._large: dict[int, FreeBlocks] = {}
        self.retired, self.uses = False, 0

    def free(self, stream_id: int, small: bool) -> FreeBlocks:
        """The list of a stream and a class of sizes."""
        lists = self._small if small else self._large
        found = lists.get(stream_id)
        if found is None:
            found = lists[stream_id] = FreeBlocks(self, small)
        return found

    def lists(self) -> list[FreeBlocks]:
        """All its lists."""
        return [*self._small.values(), *self._large.values()]
