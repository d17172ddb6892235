"""Free blocks: which one is taken, how it is cut, and how neighbours are put together again.

Source: pytorch `c10/cuda/CUDACachingAllocator.cpp` (`get_free_block`, `should_split`, `try_merge_blocks`).
"""

from __future__ import annotations

from bisect import bisect_left, insort

from refimpl.device.simulator.memory.blocks import Block, Segment
from refimpl.device.simulator.memory.layouts import LEAST_BYTES, SMALL_BYTES


class FreeBlocks:
    """The free blocks of one stream and one class of sizes, which never go to another.

    The block that was given back last is put together with its neighbours only when somebody looks: a loop asks for the
    same size again at once, and mostly gets the same block, which would be cut off again where it was.

    Args:
        pool: Whose list it is.
        small: It is of the small class.
    """

    __slots__ = ("_entries", "_latest", "_stays", "pool", "small")

    def __init__(self, pool: Pool, small: bool) -> None:
        self.pool, self.small = pool, small
        self._entries: list[tuple[int, int, int, Block]] = []
        self._latest: Block | None = None
        self._stays: set[Block] = set()  # those that come out again, as long as the entries are what they are

    def take(self, size: int) -> Block | None:
        """The smallest free block of `size` bytes or more, the first in memory where several are; what is too much of
        it is cut off and stays free."""
        latest = self._latest
        if latest is not None:
            self._latest = None
            if latest.bytes == size and (latest in self._stays or self._comes_out_again(latest)):
                self._stays.add(latest)
                return latest
            self.merge(latest)
        entries = self._entries
        at = bisect_left(entries, (size,))
        if at == len(entries):
            return None
        block = entries.pop(at)[3]
        self._stays.clear()
        block.free = False
        if self._cuts_off(block.bytes - size):
            self._cut(block, size)
        return block

    def _comes_out_again(self, block: Block) -> bool:
        """Whether a request of its size gets `block`, from a list in which it is put together with its neighbours."""
        entries, size, before, after = self._entries, block.bytes, block.previous, block.next
        if before is not None and before.free:
            return False
        at = bisect_left(entries, (size,))
        if after is not None and after.free:
            if not self._cuts_off(after.bytes):
                return False
            size += after.bytes
            if at < len(entries) and entries[at][3] is after:
                at += 1
        return at == len(entries) or (size, block.segment.serial, block.offset) < entries[at]

    def _cuts_off(self, rest: int) -> bool:
        """Whether what is too much of a block by `rest` is cut off."""
        return rest >= LEAST_BYTES if self.small else rest > SMALL_BYTES

    def add(self, segment: Segment) -> None:
        """Makes all of a new segment free."""
        block = segment.at(0)
        block.bytes, block.home = segment.bytes, self
        self._insert(block)

    def give(self, block: Block) -> None:
        """Takes a block back."""
        latest, self._latest = self._latest, block
        if latest is not None:
            self.merge(latest)

    def merge(self, block: Block) -> Block:
        """Takes a block back, and puts it together with its free neighbours at once.

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
        if self._latest is not None:
            latest, self._latest = self._latest, None
            self.merge(latest)
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
        self._stays.clear()
        block.free = True
        insort(self._entries, (block.bytes, block.segment.serial, block.offset, block))

    def _remove(self, block: Block) -> None:
        self._stays.clear()
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
