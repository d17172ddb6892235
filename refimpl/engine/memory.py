"""Rows and slots of requests: who gets them, how many ahead, and when they are free again.

Everything here runs on ``schedule_stream`` while a forward may be in flight. The barrier behind ``run_batch`` orders
its writes after that forward's reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from refimpl.engine.pools import ReqToTokenPool, SWATokenToKVPoolAllocator, TokenToKVPoolAllocator
from refimpl.engine.request import Req
from refimpl.engine.staging import Staging
from refimpl.engine.streams import Streams

BLOCKS_AHEAD = 2
"""The host knows lengths one step late, and prepares one step ahead."""


class CacheMemory:
    """What requests hold of the cache.

    Args:
        req_to_token_pool, allocator: rows and slots.
        alloc_len: slots that one step writes behind the committed length, at most.
        streams: the engine's.
        plan_stream: whether ``req_to_token`` is written on the plan stream.
        window: what sliding layers see; None without such layers.
    """

    def __init__(
        self,
        req_to_token_pool: ReqToTokenPool,
        allocator: TokenToKVPoolAllocator | SWATokenToKVPoolAllocator,
        alloc_len: int,
        streams: Streams,
        plan_stream: bool,
        window: int | None,
    ) -> None:
        self.req_to_token_pool, self.allocator = req_to_token_pool, allocator
        self._cells = req_to_token_pool.req_to_token.view(-1)
        self.num_slots = allocator.available()
        self.reserve = BLOCKS_AHEAD * alloc_len
        self.window = window
        self._streams, self.plan_stream = streams, plan_stream

    def needed(self, reqs: Sequence[Req]) -> int:
        """Slots that the next step of these requests lacks."""
        return sum(max(req.kv_committed_len + self.reserve - req.kv_allocated_len, 0) for req in reqs)

    def can_decode(self, reqs: Sequence[Req]) -> bool:
        """Whether the slots are there."""
        available = self.allocator.available()
        # No request lacks more than the reserve, as what it has committed has slots: mostly nothing is added up.
        return len(reqs) * self.reserve <= available or self.needed(reqs) <= available

    def can_admit(self, req: Req, promised: int) -> bool:
        """Whether a waiting request fits, beside what is promised to others."""
        return len(req.fill_ids) + self.reserve + promised <= self.allocator.available()

    def prepare_for_extend(self, reqs: Sequence[Req], lens: Sequence[int], staging: Staging) -> torch.Tensor:
        """Gives requests that begin slots for their tokens, and writes them into their rows.

        Args:
            reqs: who.
            lens: tokens of each.
            staging: through which the cells travel.

        Returns:
            ``[n]`` int32 slots in the order of the requests, a copy.

        Order:
            As :meth:`prepare_for_decode`; the copy is made on ``schedule_stream``.
        """
        slots = self._allocate(reqs, lens, staging)
        assert slots is not None, "a prompt has tokens"
        return slots.clone()

    def prepare_for_decode(self, reqs: Sequence[Req], staging: Staging) -> None:
        """Slots for two blocks behind what the host knows to be committed, and their numbers into the rows.

        Order:
            Called on ``schedule_stream``; writes there, or on ``plan_stream`` between a fork and a join. Behind the
            barrier: a row may have belonged to a request whose forward is in flight.
        """
        reserve = self.reserve
        ends = [max(req.kv_allocated_len, req.kv_committed_len + reserve) for req in reqs]
        self._allocate(reqs, ends, staging)

    def take_row(self, req: Req) -> bool:
        """Gives a request a row; False if none is free."""
        rows = self.req_to_token_pool.alloc(1)
        if rows is None:
            return False
        (req.req_pool_idx,) = rows
        return True

    def release(self, req: Req) -> None:
        """Takes back a request's row and slots; a forward that still uses them may be in flight.

        Order:
            On ``schedule_stream``. The slots go to their next owner at once: its K and V are written on
            ``forward_stream``, behind the redundant writes of this one; whoever brings them from elsewhere waits for
            that forward first.
        """
        n = req.kv_allocated_len
        slots = self.req_to_token_pool.req_to_token[req.row, :n]
        if isinstance(self.allocator, SWATokenToKVPoolAllocator):
            self.allocator.free(slots, n, req.swa_evicted_len)
        else:
            self.allocator.free(slots, n)
        self.req_to_token_pool.free(req.row)
        req.req_pool_idx, req.kv_allocated_len, req.kv_committed_len, req.swa_evicted_len = None, 0, 0, 0

    def clear(self) -> None:
        """Takes back every row and every slot, whoever had them; on ``schedule_stream``, with nothing in flight."""
        self.req_to_token_pool.clear()
        self.allocator.clear()

    def maybe_evict_swa(self, req: Req) -> None:
        """Frees the sliding layers' slots of tokens that no later query sees.

        Order:
            On ``schedule_stream``, while results are processed: the forward in flight has translated its page table
            before the barrier, if that stands behind ``run_batch``.
        """
        if self.window is None or not isinstance(self.allocator, SWATokenToKVPoolAllocator):
            return
        # The forward in flight starts from at least the committed length, so it looks back no further than this.
        end = req.kv_committed_len - self.window
        if end > req.swa_evicted_len:
            slots = self.req_to_token_pool.req_to_token[req.row, req.swa_evicted_len : end]
            self.allocator.free_swa(slots, end - req.swa_evicted_len)
            req.swa_evicted_len = end

    def _allocate(self, reqs: Sequence[Req], lens: Sequence[int], staging: Staging) -> torch.Tensor | None:
        """Slots up to these lengths, as the stack has them until the next one is freed; None where none is lacking."""
        cells = list[int]()
        # Cells of the flattened table: one index to upload, and to write by, instead of rows and columns.
        width = self.req_to_token_pool.max_context
        for req, end in zip(reqs, lens, strict=True):
            row = req.row * width
            cells += range(row + req.kv_allocated_len, row + end)
        if not cells:
            return None
        slots = self._assign_on_plan(cells, staging) if self.plan_stream else self._assign(cells, staging)
        for req, end in zip(reqs, lens, strict=True):
            req.kv_allocated_len = end
        return slots

    def _assign_on_plan(self, cells: list[int], staging: Staging) -> torch.Tensor:
        # Safe because: plan writes req_to_token after schedule's barrier, which it inherits here, and reads the stack
        # after schedule's last free.
        self._streams.plan_stream.wait_stream(self._streams.schedule_stream)
        with self._streams.plan_stream:
            slots = self._assign(cells, staging)
        # Safe because: schedule, and behind it forward, reads req_to_token after plan wrote it; and schedule frees
        # slots, over those that plan reads, after plan has read them.
        self._streams.schedule_stream.wait_stream(self._streams.plan_stream)
        return slots

    def _assign(self, cells: list[int], staging: Staging) -> torch.Tensor:
        slots = self.allocator.alloc_view(len(cells))
        assert slots is not None, "the scheduler retracts before slots run out"
        self._cells.index_copy_(0, staging.upload(cells), slots)
        return slots
