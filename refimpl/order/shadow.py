"""Shadow memory: for every range that was used, who touched it last.

A range that was seen before costs one dictionary look-up. A new one is compared once with the ranges it may overlap,
by arithmetic on offsets, so
that no cost depends on how many bytes a range has.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator
from functools import cache
from types import CodeType
from typing import NamedTuple

from refimpl.program import Range, contains, normalized, overlap


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
        self.near: dict[Cell, None] = {}

    def writes(self) -> Iterator[Point]:
        """The writes that a later access may race with."""
        if self.write is not None:
            yield self.write
        yield from self.older

    def is_empty(self) -> bool:
        """True when no later access can race with what is kept here."""
        return self.write is None and not self.older and not self.reads


class Entry(NamedTuple):
    """A cell in a sorted class: where it stands, a number that makes its place unique, the cell."""

    position: int
    serial: int
    cell: Cell


class Memory:
    """The cells of one stretch of memory (a buffer, or an allocator's block with all its owners), found by overlap.

    Contiguous cells lie in classes by the power of two of their length, each sorted by offset; cells with runs lie in
    classes by stride, each sorted by offset within the stride. A candidate is then seldom far from what it overlaps.
    """

    __slots__ = ("_contiguous", "_serial", "_strided", "_widest", "cells")

    def __init__(self) -> None:
        self.cells: dict[Cell, Entry] = {}
        self._contiguous: dict[int, list[Entry]] = {}
        self._strided: dict[int, list[Entry]] = {}
        self._widest: dict[int, int] = {}
        self._serial = 0

    def add(self, r: Range) -> Cell:
        """A new cell for a range, linked both ways with the cells that share bytes with it."""
        cell = Cell(r)
        simple = r.rows == 1
        for other in self._candidates(r):
            theirs = other.range
            # Two runs that are candidates meet if the other goes on to this one: no need to compute the bytes.
            meet = theirs.off + theirs.len > r.off if simple and theirs.rows == 1 else shared(r, theirs) is not None
            if meet:
                cell.near[other] = None
                other.near[cell] = None
        self._serial += 1
        self.cells[cell] = entry = Entry(_position(r), self._serial, cell)
        insort(self._class_of(r), entry, key=_place)
        self._widest[r.stride] = max(r.len, self._widest.get(r.stride, 0))
        return cell

    def drop(self, dead: Collection[Cell]) -> None:
        """Remove cells that no later access can race with."""
        for cell in dead:
            entry = self.cells.pop(cell)
            entries = self._class_of(cell.range)
            del entries[bisect_left(entries, _place(entry), key=_place)]
            for other in cell.near:
                other.near.pop(cell, None)

    def _class_of(self, r: Range) -> list[Entry]:
        if normalized(r).rows == 1:
            return self._contiguous.setdefault((r.end - r.off).bit_length(), [])
        return self._strided.setdefault(r.stride, [])

    def _candidates(self, r: Range) -> Iterator[Cell]:
        for size, entries in self._contiguous.items():
            yield from _between(entries, r.off - (1 << size), r.end)
        runs = normalized(r)
        for stride, entries in self._strided.items():
            if runs.rows > 1 and runs.stride == stride and entries:
                yield from _in_columns(entries, runs, self._widest[stride])
            else:
                yield from [entry.cell for entry in entries]


def _position(r: Range) -> int:
    """The offset, or for runs the offset within the stride."""
    return r.off if normalized(r).rows == 1 else r.off % r.stride


def _place(entry: Entry) -> tuple[int, int]:
    return entry.position, entry.serial


def _between(entries: list[Entry], low: int, high: int) -> list[Cell]:
    """The cells at positions from ``low`` up to ``high``, which is left out."""
    first = bisect_left(entries, (low, 0), key=_place)
    last = bisect_left(entries, (high, 0), key=_place)
    return [entry.cell for entry in entries[first:last]]


def _in_columns(entries: list[Entry], r: Range, widest: int) -> Iterator[Cell]:
    """Cells of the same stride whose columns may meet: a run may go on at the start of the next stride."""
    at, stride = r.off % r.stride, r.stride
    if r.len + widest >= stride:
        yield from _between(entries, 0, stride)
        return
    yield from _between(entries, at - widest + 1, at + r.len)
    yield from _between(entries, at - widest + 1 + stride, stride)
    yield from _between(entries, 0, at + r.len - stride)


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
