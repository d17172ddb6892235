"""Segments of the process's own memory, and the blocks that they are cut into."""

from __future__ import annotations

import mmap
from itertools import count
from typing import TYPE_CHECKING

import torch

from refimpl.device.simulator.memory.layouts import Layout

if TYPE_CHECKING:
    from refimpl.device.simulator.memory.free_blocks import FreeBlocks

_segments, _blocks = count(1), count(1)


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
        if not layout.flat:
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
