"""What a run of a program leaves behind: what each read found, what memory holds, in which order it came about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from refimpl.play.memory import Memory
from refimpl.play.versions import Versions
from refimpl.program import Program, Range


@dataclass(frozen=True)
class Part:
    """A run of bytes that one writer left.

    Args:
        bytes: Where.
        words: What it is, such as ``"the value of op 4 'forward'"``, ``"the initial value"`` or ``"torn: part …"``.
    """

    bytes: Range
    words: str


@dataclass(frozen=True, eq=False)
class Contents:
    """What some bytes held at one time.

    Args:
        name: The buffer or the memory, as messages say it.
        memory: Where.
        cells: Indices of the cells, in the order of the range.
        values: A value each: equal in two runs if and only if the same op wrote it from the same inputs.
        versions: What the values mean.
    """

    name: str
    memory: Memory
    cells: torch.Tensor
    values: torch.Tensor
    versions: Versions

    def parts(self) -> tuple[Part, ...]:
        """The bytes, in runs that hold the same in words."""
        words = self.words()
        return tuple(Part(bytes_, words[at]) for bytes_, at in self.runs(range(len(words)), words))

    def runs(self, chosen: Iterable[int], labels: Sequence[object]) -> Iterator[tuple[Range, int]]:
        """Some of the cells, in runs that lie side by side and have equal labels.

        Args:
            chosen: Places of the cells, in order.
            labels: One for every cell.
        Returns:
            The bytes of each run, and the place of its first cell.
        """
        starts, ends = self.memory.starts[self.cells].tolist(), self.memory.ends[self.cells].tolist()
        run: list[int] = []
        for at in (*chosen, None):
            if run and (at is None or starts[at] != ends[run[-1]] or labels[at] != labels[run[-1]]):
                yield Range(self.name, starts[run[0]], ends[run[-1]] - starts[run[0]]), run[0]
                run = []
            if at is not None:
                run.append(at)

    def words(self) -> list[str]:
        """What each cell holds."""
        return [self.versions.of(value).words for value in self.values.tolist()]

    def __str__(self) -> str:
        return "; ".join(f"{part.bytes}: {part.words}" for part in self.parts())


@dataclass(frozen=True)
class Seen:
    """What one read found.

    Args:
        op: Index of the op.
        name: What it is: the op, or a node of a graph.
        lane: Where it ran; ``"host"`` for a call that reads by itself.
        bytes: The range, as the program names it.
        contents: What was in it.
    """

    op: int
    name: str
    lane: str
    bytes: Range
    contents: Contents

    def __str__(self) -> str:
        return f"op {self.op} {self.name!r} on {self.lane} reads {self.contents}"


@dataclass(frozen=True)
class Step:
    """One step of the order that a run took.

    Args:
        lane: Number of the lane; None for a call of the host.
        where: Its name.
        op: Index of the op.
        name: What ran.
        piece, pieces: Which of how many pieces of it; 0 of 1 when it ran whole.
    """

    lane: int | None
    where: str
    op: int
    name: str
    piece: int = 0
    pieces: int = 1

    @property
    def what(self) -> str:
        """What ran, without where."""
        of = f" (piece {self.piece + 1} of {self.pieces})" if self.pieces > 1 else ""
        return f"op {self.op} {self.name}{of}"

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True)
class Played:
    """One run of a program on the simulated device.

    Args:
        program: What was run.
        id: The order: a replay of it gives the same again, to the byte.
        reads: Every reading access, in the order of ops, of their nodes and of their ranges.
        final: What each memory holds at the end.
        steps: The order in words.
    """

    program: Program
    id: str
    reads: tuple[Seen, ...]
    final: tuple[Contents, ...]
    steps: tuple[Step, ...]

    def values(self) -> bytes:
        """All that was read and all that memory holds at the end, as bytes: two runs compare by them."""
        all_ = [seen.contents.values for seen in self.reads] + [contents.values for contents in self.final]
        return b"".join(values.numpy().tobytes() for values in all_)
