"""Where the accesses of a program lie in its memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from refimpl.order import Bytes
from refimpl.play.memory import Memory
from refimpl.play.versions import Versions


@dataclass(frozen=True, eq=False)
class Spot:
    """The cells of one access.

    Args:
        memory: Where.
        cells: Their indices, in the order of the range.
        bytes: The access as the program names it.
    """

    memory: Memory
    cells: torch.Tensor
    bytes: Bytes

    def values(self) -> torch.Tensor:
        """What the cells hold now."""
        return self.memory.values[self.cells]

    def sizes(self) -> torch.Tensor:
        """How many bytes each cell stands for."""
        return self.memory.bytes_of(self.cells)


class Memories:
    """All memory of a program, by name: what its units and its host touch."""

    def __init__(self, touched: Iterable[Bytes], versions: Versions) -> None:
        ranges: dict[str, list[Bytes]] = {}
        for bytes_ in touched:
            ranges.setdefault(bytes_.memory, []).append(bytes_)
        self.by_name = {name: Memory(name, [b.range for b in all_]) for name, all_ in ranges.items()}
        for memory in self.by_name.values():
            memory.values.copy_(versions.initial(memory))

    def spots(self, touched: Iterable[Bytes]) -> tuple[Spot, ...]:
        """The cells of some accesses."""
        memories = self.by_name
        return tuple(Spot(memories[b.memory], memories[b.memory].cells(b.range), b) for b in touched)
