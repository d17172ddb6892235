"""What a capture on a GPU holds: its nodes and their order, kept with the graph for every later launch of it."""

from __future__ import annotations

from dataclasses import replace

from refimpl.device.stated import Index, parts_of
from refimpl.record.cells import Cells, Shape
from refimpl.record.cuda_log import Held
from refimpl.record.work import Access, Buffer, Lane, Mark, Work


class CapturedCells(Cells):
    """Cells of a node, whose index each launch finds anew.

    Args:
        buffer, shape, whole: As of `Cells`.
        index: The index, with `Held` in place of tensors.
    """

    def __init__(self, buffer: Buffer, shape: Shape, whole: tuple[Access, ...], index: Index) -> None:
        super().__init__(buffer, shape, whole)
        self.index, self.whole = index, whole


class CaptureNotes:
    """The nodes of one capture, in order, and what each comes after.

    Args:
        origin: The stream on which the capture began.
    """

    def __init__(self, origin: Lane) -> None:
        self.nodes: list[tuple[Work, tuple[Work, ...]]] = []
        self._tails: dict[Lane, Work | None] = {origin: None}
        self._marks: dict[int, Work] = {}

    def covers(self, lane: Lane) -> bool:
        """Whether what is issued on `lane` goes into the graph."""
        return lane in self._tails

    def holds(self, mark: Mark) -> bool:
        """Whether the event was recorded in this capture."""
        return mark.serial in self._marks

    def add(self, work: Work) -> None:
        """Notes a node: a wait for an event of the capture brings its stream in."""
        tail = self._tails.get(work.lane)
        before = () if tail is None else (tail,)
        if work.mark is not None:
            recorded = self._marks.get(work.mark.serial)
            if recorded is not None and work.name == "wait":
                before = (*before, recorded)
            elif work.name == "record":
                self._marks[work.mark.serial] = work
        self.nodes.append((work, before))
        self._tails[work.lane] = work

    def instantiate(self) -> tuple[tuple[Work, ...], tuple[tuple[Work, ...], ...], list[tuple[Cells, Index]]]:
        """The nodes of one launch, what each comes after, and the cells to look up."""
        cells = list[tuple[Cells, Index]]()
        fresh = dict[int, Work]()
        for node, _ in self.nodes:
            reads, writes = _fresh(node.reads, cells), _fresh(node.writes, cells)
            fresh[id(node)] = replace(node, reads=reads, writes=writes)
        after = tuple(tuple(fresh[id(other)] for other in before) for _, before in self.nodes)
        return tuple(fresh.values()), after, cells


def _fresh(touched: tuple[Access | Cells, ...], cells: list[tuple[Cells, Index]]) -> tuple[Access | Cells, ...]:
    made = list[Access | Cells]()
    for one in touched:
        if isinstance(one, CapturedCells):
            again = Cells(one.buffer, one.shape, one.whole)
            cells.append((again, one.index))
            made.append(again)
        else:
            made.append(one)
    return tuple(made)


def held_of(index: Index) -> list[Held]:
    """The held values that an index is made of."""
    return [part for part in parts_of(index) if isinstance(part, Held)]
