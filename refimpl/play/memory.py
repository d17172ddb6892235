"""The memory of a program as the player holds it: real bytes, as few as the program can tell apart.

The rule: the ends of all ranges that the program names in a memory cut it into cells, and no access touches a part of a
cell. So a cell needs one value, eight bytes long, however many bytes it stands for, and a buffer of 16 GiB that is used
as a whole is one cell. A write that is torn inside a cell leaves some of the eight bytes new and some old.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from refimpl.program import Range, UserError, normalized

MOST_CELLS = 4_000_000
"""The most cells that one memory may have: beyond, rows of many ranges would fill the machine's memory."""

VALUE_BYTES = 8
"""Bytes of a cell's value."""


class Memory:
    """One stretch of memory: a buffer, or an allocator's block with all its owners.

    Args:
        name: What messages call it.
        ranges: Every range that the program touches in it; what their buffers are called does not matter.
    Attributes:
        name: What messages call it.
        starts: Offset in bytes of each cell.
        ends: Offset in bytes of the first byte after each cell.
        values: One value a cell, int64 on the CPU: what the device's ops read and write.
    Raises:
        UserError: The ranges cut it into more than `MOST_CELLS` cells.
    """

    def __init__(self, name: str, ranges: Iterable[Range]) -> None:
        self.name = name
        found = list(dict.fromkeys(normalized(r)._replace(buf="") for r in ranges))
        if sum(r.rows for r in found) > MOST_CELLS:
            raise UserError(f"{name}: its ranges have more than {MOST_CELLS:,} rows: replay a smaller part")
        cuts = torch.cat([torch.cat((_row_starts(r), _row_starts(r) + r.len)) for r in found]).unique()
        self.starts, self.ends = cuts[:-1], cuts[1:]
        self.values = torch.zeros(len(self.starts), dtype=torch.int64)
        self._known: dict[Range, torch.Tensor] = {}

    def cells(self, r: Range) -> torch.Tensor:
        """The indices of the cells of a range, in memory order, as an int64 tensor."""
        known = self._known.get(r)
        if known is None:
            runs = normalized(r)
            starts = _row_starts(runs)
            known = self._known[r] = _runs(
                torch.searchsorted(self.starts, starts), torch.searchsorted(self.starts, starts + runs.len)
            )
        return known

    def bytes_of(self, cells: torch.Tensor) -> torch.Tensor:
        """How many bytes each of the cells stands for."""
        sizes: torch.Tensor = self.ends[cells] - self.starts[cells]
        return sizes


def _row_starts(r: Range) -> torch.Tensor:
    starts: torch.Tensor = torch.arange(r.rows) * r.stride + r.off
    return starts


def _runs(first: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """All integers from each `first` up to its `last`, which is left out."""
    if len(first) == 1:
        return torch.arange(int(first), int(last))
    counts = (last - first).numpy()
    shifts = first.numpy() - (counts.cumsum() - counts)
    # NumPy's repeat: PyTorch's starts a thread pool for a handful of rows, which costs milliseconds where cores are few
    return torch.arange(int(counts.sum())) + torch.from_numpy(np.repeat(shifts, counts))
