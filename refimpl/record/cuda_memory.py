"""Which allocation a tensor of a GPU lies in, told by the caching allocator's own callbacks; nothing is kept alive.

PyTorch's tracing of a GPU cannot be turned off again: from the first recording of a process on, each allocation and
release costs the host a call.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from refimpl.program import Mem
from refimpl.record.work import Buffer, Lane

if TYPE_CHECKING:
    from refimpl.record.tap import Tap


class DeviceMemory:
    """The allocations of this process, by address, across recordings.

    Two allocations that begin at one address lie in one block: the second is the block's next owner. What a graph's
    capture allocates is the graph's, and shared by all who have had it.

    Attributes:
        tap: Is told of allocations and releases; None between recordings.
    """

    def __init__(self) -> None:
        self.tap: Tap | None = None
        self._live: dict[int, Buffer] = {}
        self._of_graphs: dict[int, Buffer] = {}

    def of(self, tensor: torch.Tensor) -> Buffer:
        """The allocation that a tensor lies in."""
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        buffer = self._live.get(address)
        if buffer is None:
            buffer = self._live[address] = Buffer(0, Mem.DEVICE, block=address)
        buffer.bytes = max(buffer.bytes, storage.nbytes())
        return buffer

    def allocated(self, address: int) -> None:
        """The allocator handed out the block that begins at `address`."""
        if torch.cuda.is_current_stream_capturing():
            self._live[address] = self._of_graphs.setdefault(address, Buffer(0, Mem.DEVICE))
            return
        buffer = self._live[address] = Buffer(0, Mem.DEVICE, lane_of(torch.cuda.current_stream()), address)
        if self.tap is not None:
            self.tap.lived(buffer, begins=True)

    def freed(self, address: int) -> None:
        """The allocator took the block back."""
        buffer = self._live.pop(address, None)
        if buffer is not None and buffer.block is not None and self.tap is not None:
            self.tap.lived(buffer, begins=False)


class HostMemory:
    """The host buffers that the device copies from or to, by address, and pinned ones."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[StorageWeakRef, Buffer]] = {}

    def known(self, tensor: torch.Tensor) -> Buffer | None:
        """The buffer that a host tensor lies in, if it is pinned or the device has copied from or to it."""
        found = self._known.get(tensor.untyped_storage().data_ptr())
        if found is not None and not found[0].expired():
            return found[1]
        return self._register(tensor, Mem.PINNED) if tensor.is_pinned() else None

    def of(self, tensor: torch.Tensor) -> Buffer:
        """The buffer that a host tensor lies in."""
        return self.known(tensor) or self._register(tensor, Mem.PAGEABLE)

    def _register(self, tensor: torch.Tensor, mem: Mem) -> Buffer:
        storage = tensor.untyped_storage()
        if len(self._known) > 4096:
            self._known = {at: entry for at, entry in self._known.items() if not entry[0].expired()}
        buffer = Buffer(storage.nbytes(), mem)
        self._known[storage.data_ptr()] = (StorageWeakRef(storage), buffer)
        return buffer


_priorities: dict[int, int] = {}


def lane_of(stream: Any) -> Lane:
    """A stream of PyTorch as a lane."""
    id_ = int(stream.stream_id)
    if id_ not in _priorities:
        _priorities[id_] = int(getattr(stream, "priority", 0))
    return Lane(id_, None if id_ else "default", _priorities[id_])


@cache
def device_memory() -> DeviceMemory:
    """The one table of allocations, which begins to listen when it is first asked for."""
    from torch.cuda import _gpu_trace

    memory = DeviceMemory()
    activate: Any = torch._C
    activate._activate_gpu_trace()
    _gpu_trace.register_callback_for_memory_allocation(memory.allocated)
    _gpu_trace.register_callback_for_memory_deallocation(memory.freed)
    return memory
