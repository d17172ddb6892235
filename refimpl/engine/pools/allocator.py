"""`TokenToKVPoolAllocator`: which slots of the KV pool are free. Their numbers stay on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from refimpl.engine.pools.contract import Callers, refuse_empty


class TokenToKVPoolAllocator:
    """Hands out slots of a KV pool, each to one owner at a time; the slot freed last is handed out first.

    The free list is a stack on the device, and the host knows where it begins, no more. Slots that a request frees come
    from its row of `req_to_token`, which is on the device too, so neither call has to wait for a value. The stack has
    its full size from the start: nothing is allocated but the slots handed out.

    Args:
        num_slots: Slots to hand out, numbered from 1: slot 0 is padding.
        device: Where the stack lies.
        streams: Streams that may call, if that is to be checked; see Order.
        name: Of the pool in errors.
    Attributes:
        stack: `[num_slots]` int32, on the device; the free slots are its last ones, the next one first of them.
    Raises:
        ValueError: `num_slots` is below 1.
    Order:
        Made and called on the schedule stream, or on the plan stream if it is forked off the schedule stream before the
        call and joined after it. That FIFO order is the only fence of the stack: `free` writes the cells that an
        `alloc` before has read (WAR), and an `alloc` after reads them (RAW). The host does not block.

        A slot may be handed on while the forward of its old owner is in flight, redundant writes included. That is
        safe because all access to the KV itself is on the forward stream, where the new owner's writes come later;
        whoever brings KV from elsewhere waits for that forward.
    Source:
        sgl-project/sglang, `TokenToKVPoolAllocator` in `mem_cache/allocator/token.py`, 0.5.23. There the free list is
        concatenated anew at each `free`, and the slot freed last is handed out last.
    Example:
        >>> slots = TokenToKVPoolAllocator(num_slots=4, device="cpu")
        >>> a, b = slots.alloc(2), slots.alloc(1)
        >>> a.tolist(), b.tolist(), slots.alloc(2)
        ([1, 2], [3], None)
        >>> slots.free(a, 2)
        >>> slots.available(), slots.alloc(3).tolist()
        (3, [2, 1, 4])
    """

    def __init__(self, num_slots: int, device: str, streams: Sequence[Any] = (), name: str = "KV slots") -> None:
        refuse_empty(name, num_slots=num_slots)
        self.num_slots, self.name = num_slots, name
        self._callers = Callers(name, device, streams)
        self._callers.check()
        self.stack = torch.arange(1, num_slots + 1, dtype=torch.int32, device=device)
        self._begin = 0

    def available(self) -> int:
        """How many slots are free."""
        return self.num_slots - self._begin

    def alloc(self, n: int) -> torch.Tensor | None:
        """Takes `n` slots, or none: None if fewer are free, upon which the scheduler retracts a request.

        Returns:
            `[n]` int32 on the device, in the order in which `n` calls for one slot each would give them. A copy: as
            a view of the stack it would change under a forward that still reads it, once slots are freed (WAR). It
            belongs to the stream current now; keep it alive until the last stream that reads it has done so.
        Raises:
            ValueError: `n` is negative.
        Order: reads the stack on the current stream; the host does not block.
        """
        slots = self.alloc_view(n)
        return None if slots is None else slots.clone()

    def alloc_view(self, n: int) -> torch.Tensor | None:
        """As `alloc`, but a part of the stack itself, for what reads it right away: a launch less.

        Order: for readers on the current stream alone, given their work before the next slot is freed. Under a forward
        that still reads it, it would change then (WAR).
        """
        self._callers.check()
        if n < 0:
            raise ValueError(f"{self.name}: alloc({n}) asks for fewer than no slots")
        begin = self._begin
        if n > self.num_slots - begin:
            return None
        self._begin += n
        return self.stack[begin : self._begin]

    def free(self, slots: torch.Tensor, n: int) -> None:
        """Gives `n` slots back; the last of them is the next handed out.

        Args:
            slots: `[n]` integers on the device, read when the current stream gets there: often a part of a row of
                `req_to_token`, which may be written again right behind this call on the same stream.
            n: How many there are by the caller's own account of its request.
        Raises:
            RuntimeError: The account and the tensor differ, or more slots come back than are out. A slot freed twice
                while others are out cannot be seen without its value: `check_blocking` finds it.
        Order: writes the stack on the current stream; the host does not block.
        """
        self._callers.check()
        if slots.shape != (n,):
            raise RuntimeError(f"{self.name}: free() of {n} slots was given a tensor of shape {list(slots.shape)}")
        if n > self._begin:
            raise RuntimeError(
                f"{self.name}: {n} slots are freed, but only {self._begin} of {self.num_slots} are out: a slot is "
                "freed twice, or the account of a request is wrong"
            )
        self._begin -= n
        self.stack[self._begin : self._begin + n].copy_(slots.flip(0))

    def clear(self) -> None:
        """Makes every slot free, whoever had it; with nothing in flight that uses one.

        Order: writes the stack on the current stream; the host does not block.
        """
        self._callers.check()
        torch.arange(1, self.num_slots + 1, out=self.stack)
        self._begin = 0

    def free_slots_blocking(self) -> list[int]:
        """The free slots, the next one last. For tests: it blocks the host until the current stream gets there."""
        return [int(slot) for slot in reversed(self.stack[self._begin :].tolist())]

    def check_blocking(self) -> None:
        """Checks that each free slot is in the stack once. For tests: it blocks the host.

        Raises:
            RuntimeError: A slot is there twice, or is none of this pool's.
        """
        free = self.free_slots_blocking()
        odd = sorted({s for s in free if not 1 <= s <= self.num_slots} | twice(free))
        if odd:
            raise RuntimeError(
                f"{self.name}: {odd} are in the free list twice, or are no slots from 1 to {self.num_slots}: "
                "some caller freed a slot that was not its own"
            )


def twice(values: Sequence[int]) -> set[int]:
    """The values that occur more than once."""
    seen, again = set[int](), set[int]()
    for value in values:
        (again if value in seen else seen).add(value)
    return again
