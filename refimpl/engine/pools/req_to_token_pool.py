"""`ReqToTokenPool`: one row for each running request, which says in which slot each of its tokens lies."""

from __future__ import annotations

import torch

from refimpl.engine.pools.contract import refuse_empty


class ReqToTokenPool:
    """Rows of `req_to_token`, each held by one request at most; the row freed last is handed out first.

    Reuse as early as possible is what makes a missing fence show: the row of a request that ended goes to the next one
    while the redundant forward of the old one may still read it.

    Args:
        rows: How many requests can run at a time. They get the rows 1 to `rows`: row 0 is padding, and always zeros, so
            that a padded request of a captured graph reads and writes slot 0.
        max_context: Tokens a row has room for.
        device: Where the table lies.
    Attributes:
        req_to_token: `[rows + 1, max_context]` int32, on the device: the slot of each token of each row. Cells that no
            token has yet hold what was there before.
    Raises:
        ValueError: `rows` or `max_context` is below 1.
    Order:
        The host has the free list, so `alloc` and `free` touch no device memory and do not block. The table is zeroed
        on the stream current at construction. Afterwards the schedule stream writes it (or the plan stream, forked off
        and joined again) and the forward reads it. RAW: the forward waits for the schedule stream before it reads. WAR:
        the schedule stream writes a row only behind the last read of the forward in flight, which may be of a request
        that held this row before; `free` orders nothing.
    Source:
        sgl-project/sglang, `ReqToTokenPool` in `mem_cache/memory_pool.py`, 0.5.23.
    Example:
        >>> pool = ReqToTokenPool(rows=3, max_context=8, device="cpu")
        >>> pool.alloc(2), pool.alloc(2)
        ([1, 2], None)
        >>> pool.free(1)
        >>> pool.alloc(2)
        [1, 3]
    """

    def __init__(self, rows: int, max_context: int, device: str) -> None:
        refuse_empty("ReqToTokenPool", rows=rows, max_context=max_context)
        self.rows, self.max_context = rows, max_context
        self.req_to_token = torch.zeros(rows + 1, max_context, dtype=torch.int32, device=device)
        self.clear()

    def clear(self) -> None:
        """Makes every row free, whoever had it; the cells keep their values."""
        self._free = list(range(self.rows, 0, -1))
        self._taken = set[int]()

    def available(self) -> int:
        """How many rows are free."""
        return len(self._free)

    def alloc(self, n: int) -> list[int] | None:
        """Takes `n` rows, or none: None if fewer are free.

        Raises:
            ValueError: `n` is negative.
        """
        if n < 0:
            raise ValueError(f"ReqToTokenPool: alloc({n}) asks for fewer than no rows")
        if n > len(self._free):
            return None
        taken = [self._free.pop() for _ in range(n)]
        self._taken.update(taken)
        return taken

    def free(self, row: int) -> None:
        """Gives a row back; its cells keep their values, for the forward that may be in flight.

        Raises:
            RuntimeError: Nobody holds the row: a second owner would get it otherwise.
        """
        if row not in self._taken:
            raise RuntimeError(
                f"ReqToTokenPool: row {row} is freed, but no request holds it (rows are 1 to {self.rows}): "
                "free a row once, and only one that alloc gave"
            )
        self._taken.remove(row)
        self._free.append(row)
