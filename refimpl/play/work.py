"""What a unit of a program does when the device gets there: it reads versions, and writes one made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from refimpl.device.simulator.ops import Effect, Landing
from refimpl.play.pieces import Results, landing
from refimpl.play.spots import Spot
from refimpl.play.versions import Versions, Writer

Saw = Callable[[Spot, torch.Tensor], None]
"""Notes what a read found in the cells of a spot."""

Ran = Callable[[int, int], None]
"""Notes that one of several pieces has landed: which, of how many."""


@dataclass(frozen=True, eq=False)
class Work(Effect):
    """An effect on the program's memory.

    Args:
        writer: Who does it, as messages say it.
        key: What sets it apart from every other op and node.
        reads, writes: What it uses.
        versions: All versions of the run.
        saw: Told what each read found.
        ran: Told of each piece.
        moves: It is a copy: the values that it reads are stored as they are.
        staged: What the host took from a copy's source at the call.
    """

    writer: Writer
    key: str
    reads: tuple[Spot, ...]
    writes: tuple[Spot, ...]
    versions: Versions
    saw: Saw
    ran: Ran
    moves: bool = False
    staged: tuple[tuple[Spot, torch.Tensor], ...] = ()

    def __call__(self) -> None:
        """Does all of it at one instant."""
        for spot, values in self._results():
            spot.memory.values[spot.cells] = values
        self.ran(0, 1)

    def begin(self, pieces: int) -> Landing:
        """Reads now; what is returned stores the results, each time as many bytes of what the ranges stand for."""
        self.versions.splits()
        store = landing(self._results(), pieces)

        def land(piece: int) -> None:
            store(piece)
            self.ran(piece, pieces)

        return land

    def _results(self) -> Results:
        """Reads, and computes what is to be stored."""
        read = [(spot, spot.values()) for spot in self.reads]
        for spot, values in read:
            self.saw(spot, values)
        inputs = [*self.staged, *read]
        if self.moves and _bytes(spot for spot, _ in inputs) == _bytes(self.writes):
            return [(target, self._moved(inputs, target)) for target in self.writes]
        found = [values for _, values in inputs]
        return [
            (spot, self.versions.written(self.writer, self.key, found, spot.memory, spot.cells)) for spot in self.writes
        ]

    def _moved(self, inputs: Results, target: Spot) -> torch.Tensor:
        """The values of the source in the cells of the target; a cell made of several becomes a value of its own."""
        ((source, values),) = inputs
        ends, sizes = source.sizes().cumsum(0), target.sizes()
        last_byte = sizes.cumsum(0) - 1
        first = torch.searchsorted(ends, last_byte + 1 - sizes, right=True)
        last = torch.searchsorted(ends, last_byte, right=True)
        moved = values[first]
        for at in (first != last).nonzero().flatten().tolist():
            parts = values[int(first[at]) : int(last[at]) + 1].tolist()
            moved[at] = self.versions.joined(parts)
        self.versions.moved(target.memory, target.cells, moved)
        return moved


def _bytes(spots: Iterable[Spot]) -> int:
    return sum(int(spot.sizes().sum()) for spot in spots)
