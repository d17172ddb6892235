"""How much memory is in use, counted as `torch.cuda.memory_stats` counts it."""

from __future__ import annotations


class Usage:
    """What tensors have of one class of sizes, or of all, and what it lies in.

    Each number is kept as a total of what it went up by, a total of what it went down by, and the peak of the
    difference. All allocations of the device pass here, so it is written out. What is active and what is allocated
    differ only while blocks wait for a stream that `record_stream` named, so the peak of what is active is noted only
    then: at all other times it is that of what is allocated.
    """

    __slots__ = (
        "_active_bytes_peak",
        "_active_peak",
        "_allocated_bytes_peak",
        "_allocated_peak",
        "_bytes",
        "_count",
        "_freed",
        "_freed_bytes",
        "_freed_requested",
        "_released",
        "_released_bytes",
        "_requested",
        "_requested_peak",
        "_reserved_bytes",
        "_reserved_peak",
        "_segments",
        "_segments_peak",
        "_waiting",
        "_waiting_bytes",
    )

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, 0)

    _count: int
    _bytes: int
    _requested: int
    _freed: int
    _freed_bytes: int
    _freed_requested: int
    _waiting: int
    _waiting_bytes: int
    _segments: int
    _reserved_bytes: int
    _released: int
    _released_bytes: int

    def allocate(self, bytes_: int, requested: int) -> None:
        """A tensor has a block of `bytes_`, for a request of `requested`."""
        self._count = count = self._count + 1
        self._bytes = total = self._bytes + bytes_
        self._requested = wanted = self._requested + requested
        if count - self._freed > self._allocated_peak:
            self._allocated_peak = count - self._freed
        if total - self._freed_bytes > self._allocated_bytes_peak:
            self._allocated_bytes_peak = total - self._freed_bytes
        if wanted - self._freed_requested > self._requested_peak:
            self._requested_peak = wanted - self._freed_requested
        if self._waiting:
            self._active_peak = max(self._active_peak, count - self._freed + self._waiting)
            self._active_bytes_peak = max(self._active_bytes_peak, self.allocated_bytes + self._waiting_bytes)

    _allocated_peak: int
    _allocated_bytes_peak: int
    _requested_peak: int
    _active_peak: int
    _active_bytes_peak: int
    _segments_peak: int
    _reserved_peak: int

    def free(self, bytes_: int, requested: int) -> None:
        """No tensor has it any more."""
        self._freed += 1
        self._freed_bytes += bytes_
        self._freed_requested += requested

    def wait(self, bytes_: int) -> None:
        """It was freed, and cannot be handed out again: a stream that `record_stream` named may use it."""
        self._waiting += 1
        self._waiting_bytes += bytes_

    def settle(self, bytes_: int) -> None:
        """What waited can be handed out again."""
        self._waiting -= 1
        self._waiting_bytes -= bytes_

    def reserve(self, bytes_: int) -> None:
        """A segment was taken from the system."""
        self._segments += 1
        self._reserved_bytes += bytes_
        self._segments_peak = max(self._segments_peak, self._segments - self._released)
        self._reserved_peak = max(self._reserved_peak, self.reserved_bytes)

    def release(self, bytes_: int) -> None:
        """A segment was given back to the system."""
        self._released += 1
        self._released_bytes += bytes_

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the blocks that tensors have."""
        return self._bytes - self._freed_bytes

    @property
    def reserved_bytes(self) -> int:
        """Bytes taken from the system, free or not."""
        return self._reserved_bytes - self._released_bytes

    def reset_peaks(self) -> None:
        """Every peak is what there is now."""
        values = self.values()
        self._allocated_peak = values["allocation.current"]
        self._allocated_bytes_peak = values["allocated_bytes.current"]
        self._requested_peak = values["requested_bytes.current"]
        self._active_peak = values["active.current"]
        self._active_bytes_peak = values["active_bytes.current"]
        self._segments_peak = values["segment.current"]
        self._reserved_peak = values["reserved_bytes.current"]

    def values(self) -> dict[str, int]:
        """Its part of `memory_stats`.

        `active` are the blocks that tensors have, and those that wait for a stream that `record_stream` named.
        """
        settled, settled_bytes = self._freed - self._waiting, self._freed_bytes - self._waiting_bytes
        active_peak = max(self._active_peak, self._allocated_peak)
        active_bytes_peak = max(self._active_bytes_peak, self._allocated_bytes_peak)
        rows = {
            "allocation": (self._count, self._freed, self._allocated_peak),
            "allocated_bytes": (self._bytes, self._freed_bytes, self._allocated_bytes_peak),
            "requested_bytes": (self._requested, self._freed_requested, self._requested_peak),
            "active": (self._count, settled, active_peak),
            "active_bytes": (self._bytes, settled_bytes, active_bytes_peak),
            "segment": (self._segments, self._released, self._segments_peak),
            "reserved_bytes": (self._reserved_bytes, self._released_bytes, self._reserved_peak),
        }
        return {
            f"{name}.{part}": value
            for name, (up, down, peak) in rows.items()
            for part, value in (("current", up - down), ("peak", peak), ("allocated", up), ("freed", down))
        }
