"""Shadow memory: for every range that was used, who touched it last.

A range that was seen before costs one dictionary look-up. A new one is compared once with the ranges it may overlap,
by arithmetic on offsets, so
that no cost depends on how many bytes a range has.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from functools import cache
from types import CodeType
from typing import NamedTuple

from refimpl.program import Range, contains, overlap


class Point(NamedTuple):
    """One access in time: ``epoch`` on lane ``lane``, made by call ``call`` at a site.

    The site is a code object and the offset of an instruction in it, which is quicker to take than a line; or words
    and 0.
    """

    lane: int
    epoch: int
    call: int
    name: str
    code: CodeType | str
    offset: int


class Cell:
    """The history of one range: its last write, the last read of each lane, and the cells whose bytes it shares.

    ``older`` holds writes that raced with a later one: they are still unordered with what may come.
    """

    __slots__ = ("near", "older", "range", "reads", "write")

    def __init__(self, range: Range) -> None:
        self.range = range
        self.write: Point | None = None
        self.older: list[Point] = []
        self.reads: dict[int, Point] = {}
        self.near: list[Cell] = []

    def writes(self) -> Iterator[Point]:
        """The writes that a later access may race with."""
        if self.write is not None:
            yield self.write
        yield from self.older

    def is_empty(self) -> bool:
        """True when no later access can race with what is kept here."""
        return self.write is None and not self.older and not self.reads


class Memory:
    """The cells of one stretch of memory (a buffer, or an allocator's block with all its owners), found by overlap.

    Cells lie in classes by the power of two of their extent, each sorted by offset: a candidate is then never far from
    the range it overlaps.
    """

    __slots__ = ("_classes", "cells")

    def __init__(self) -> None:
        self.cells: list[Cell] = []
        self._classes: dict[int, list[tuple[int, int, Cell]]] = {}

    def add(self, r: Range) -> Cell:
        """A new cell for a range, linked both ways with the cells that share bytes with it."""
        cell = Cell(r)
        for other in self._candidates(r):
            if shared(r, other.range) is not None:
                cell.near.append(other)
                other.near.append(cell)
        self.cells.append(cell)
        insort(
            self._classes.setdefault((r.end - r.off).bit_length(), []),
            (r.off, len(self.cells), cell),
            key=lambda entry: entry[:2],
        )
        return cell

    def drop(self, dead: set[Cell]) -> None:
        """Remove cells that no later access can race with."""
        for cell in dead:
            for other in cell.near:
                if other not in dead:
                    other.near.remove(cell)
        self.cells = [cell for cell in self.cells if cell not in dead]
        for size, entries in list(self._classes.items()):
            self._classes[size] = [entry for entry in entries if entry[2] not in dead]

    def _candidates(self, r: Range) -> Iterator[Cell]:
        for size, entries in self._classes.items():
            start = bisect_left(entries, r.off - (1 << size), key=lambda entry: entry[0])
            for off, _, cell in entries[start:]:
                if off >= r.end:
                    break
                yield cell


def shared(a: Range, b: Range) -> Range | None:
    """The first bytes two ranges of one memory share; their buffers may be successive owners of a block."""
    return overlap(a, b if a.buf == b.buf else b._replace(buf=a.buf))


def covers(outer: Range, inner: Range) -> bool:
    """True when a write of ``outer`` surely wrote every byte of ``inner``, in one memory."""
    return contains(outer, inner if outer.buf == inner.buf else inner._replace(buf=outer.buf))


@cache
def line_of(code: CodeType, offset: int) -> int:
    """The line of the instruction at this offset of a code object; its first line when the offset is in none."""
    lines = (line for start, end, line in code.co_lines() if start <= offset < end and line is not None)
    return next(lines, code.co_firstlineno)
