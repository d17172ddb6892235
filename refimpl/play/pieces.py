"""A write that lands in pieces, so that others see it torn."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from refimpl.device.simulator.ops import Landing
from refimpl.play.memory import VALUE_BYTES
from refimpl.play.spots import Spot

WHOLE_BYTES = 8
"""A cell of up to this many bytes lands at once, as one element does."""

Results = Sequence[tuple[Spot, torch.Tensor]]
"""What is to be stored: a value for each cell of each spot."""


def landing(results: Results, pieces: int) -> Landing:
    """Stores the results, in each piece as many of the program's bytes, in the order of memory.

    Returns:
        What stores one of the pieces.
    """
    sizes = torch.cat([spot.sizes() for spot, _ in results])
    starts = sizes.cumsum(0) - sizes
    total = int(sizes.sum())
    counts = [len(values) for _, values in results]

    def stored_at(piece: int) -> tuple[torch.Tensor, ...]:
        """How many of each cell's eight bytes are stored before a piece."""
        landed = (total * piece // pieces - starts).clamp(min=0).minimum(sizes)
        torn = (landed.double() / sizes * VALUE_BYTES).long()
        whole = (landed == sizes).long() * VALUE_BYTES
        stored: tuple[torch.Tensor, ...] = torch.where(sizes > WHOLE_BYTES, torn, whole).split(counts)
        return stored

    def land(piece: int) -> None:
        for (spot, values), first, last in zip(results, stored_at(piece), stored_at(piece + 1), strict=True):
            _store(spot, values, first, last)

    return land


def _store(spot: Spot, values: torch.Tensor, first: torch.Tensor, last: torch.Tensor) -> None:
    """Stores of each cell's value the bytes from `first` up to `last`, which is left out."""
    whole = (first == 0) & (last == VALUE_BYTES)
    spot.memory.values[spot.cells[whole]] = values[whole]
    held, given = _bytes(spot.memory.values), _bytes(values)
    for at in ((first < last) & ~whole).nonzero().flatten().tolist():
        part = slice(int(first[at]), int(last[at]))
        held[spot.cells[at], part] = given[at, part]


def _bytes(values: torch.Tensor) -> torch.Tensor:
    """The same memory, a row of eight bytes for each value."""
    return values.view(torch.uint8).view(-1, VALUE_BYTES)
