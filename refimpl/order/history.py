"""Who touched which bytes last, and which of them race: the access half of the streaming checker."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType

from refimpl.order.clocks import Clock, Lane
from refimpl.order.report import Hazard
from refimpl.order.shadow import Cell, Memory, Point, covers, line_of, shared
from refimpl.program import Range

SWEEP_AT = 256
"""Ranges in use before those that no later access can race with are looked for and dropped."""

CROWD = 64
"""Neighbours of a range above which a write looks for those that hold nothing any more."""


@dataclass
class Found:
    """A racing pair of sites.

    Args:
        kind: the hazard.
        bytes: the first bytes at stake.
        first, second: the first pair of accesses seen.
        owners: the buffers of the two accesses; they differ when a block went from one owner to the next.
        after_free: the first access was issued after its buffer was freed.
        count: how many pairs of calls were seen.
        latest: the pair seen last; one pair may race on several ranges, or as RAW and WAW at once.
    """

    kind: Hazard
    bytes: Range
    first: Point
    second: Point
    owners: tuple[str, str]
    after_free: bool = False
    count: int = 1
    latest: tuple[int, int] = (-1, -1)


class _Cells(dict[Range, Cell]):
    """Cells by range; one that is not there is made by the history, so that the hot path is a plain look-up."""

    def __init__(self, make: Callable[[Range], Cell]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, r: Range) -> Cell:
        return self._make(r)


class History:
    """Shadow memory that compares each access with the last ones of the same bytes.

    Args:
        host: the host's lane; what it has seen end cannot race any more.
    """

    def __init__(self, host: Lane) -> None:
        self._host = host
        self.found: dict[tuple[object, ...], Found] = {}
        self._cells = _Cells(self._cell)
        self._memories: dict[tuple[str, str], Memory] = {}
        self._block_of: dict[str, str] = {}
        self._freed: dict[str, int] = {}
        self._sweep_at = SWEEP_AT

    def touch(self, clock: Clock, point: Point, reads: Iterable[Range], writes: Iterable[Range]) -> None:
        """An access at ``point``, by work that comes after ``clock``; races with earlier accesses are noted.

        The two loops are the checker's hot path: what is common costs a look-up and a comparison, the rest is
        elsewhere.
        """
        cells, lane = self._cells, point[0]
        for r in reads:
            cell = cells[r]
            write = cell.write
            if write is not None and write[1] > clock[write[0]]:
                self._report(Hazard.RAW, cell, write, r, point)
            if cell.near or cell.older:
                self._read_slowly(cell, clock, point)
            cell.reads[lane] = point
        for r in writes:
            cell = cells[r]
            write = cell.write
            if cell.near or cell.older or (write is not None and write[1] > clock[write[0]]):
                self._write_slowly(cell, clock, point)
            elif cell.reads:
                for read in cell.reads.values():
                    if read[1] > clock[read[0]]:
                        self._write_slowly(cell, clock, point)
                        break
                else:
                    cell.reads.clear()
            cell.write = point

    def free(self, buf: str, call: int) -> str | None:
        """``buf`` is freed by this call; returns the block that it lives in, when it is the caching allocator's."""
        self._freed[buf] = call
        return self._block_of.get(buf)

    def own(self, buf: str, block: str) -> None:
        """From here on ``buf`` lives in ``block``: an unordered use by a former owner is a race with its uses."""
        former = self._memories.get(self._place(buf))
        if former is not None:
            self._unlist(cell for cell in former.cells if cell.range.buf == buf)
        self._block_of[buf] = block
        self._freed.pop(buf, None)
        memory = self._memories.get(self._place(buf))
        if memory is not None:  # or each owner would leave cells that all later owners are compared with
            dead = {cell for cell in memory.cells if cell.is_empty()}
            memory.drop(dead)
            self._unlist(dead)

    def _place(self, buf: str) -> tuple[str, str]:
        """Where a buffer's bytes are: in its allocator's block, or in itself."""
        block = self._block_of.get(buf)
        return ("buffer", buf) if block is None else ("block", block)

    def _read_slowly(self, cell: Cell, clock: Clock, point: Point) -> None:
        for write in cell.older:
            if write.epoch > clock[write.lane]:
                self._report(Hazard.RAW, cell, write, cell.range, point)
        for other in cell.near:
            last = other.write
            if last is not None and last[1] > clock[last[0]]:
                self._report(Hazard.RAW, other, last, cell.range, point)
            for write in other.older:
                if write.epoch > clock[write.lane]:
                    self._report(Hazard.RAW, other, write, cell.range, point)

    def _write_slowly(self, cell: Cell, clock: Clock, point: Point) -> None:
        """Compare a write with all that touched its bytes; what it surely covers and comes after is forgotten."""
        crowd = list(cell.near)
        for other in (cell, *crowd):
            for write in other.writes():
                if write.epoch > clock[write.lane]:
                    self._report(Hazard.WAW, other, write, cell.range, point)
            for read in other.reads.values():
                if read.epoch > clock[read.lane]:
                    self._report(Hazard.WAR, other, read, cell.range, point)
            if other is cell or covers(cell.range, other.range):
                other.older = [write for write in other.writes() if write.epoch > clock[write.lane]]
                other.reads = {lane: read for lane, read in other.reads.items() if read.epoch > clock[lane]}
                other.write = None
        if len(crowd) > CROWD:
            self._forget(cell, {other for other in crowd if other.is_empty()})

    def _forget(self, cell: Cell, dead: set[Cell]) -> None:
        """Drop neighbours that hold nothing: or writes that grow, or slide, would meet all that came before."""
        self._memories[self._place(cell.range.buf)].drop(dead)
        self._unlist(dead)

    def _cell(self, r: Range) -> Cell:
        if len(self._cells) >= self._sweep_at:
            self._sweep()
        memory = self._memories.setdefault(self._place(r.buf), Memory())
        cell = self._cells[r] = memory.add(r)
        return cell

    def _sweep(self) -> None:
        """Forget ranges whose accesses the host has seen end: every later call comes after them."""
        for name, memory in list(self._memories.items()):
            dead = {cell for cell in memory.cells if _seen(cell, self._host.clock)}
            memory.drop(dead)
            self._unlist(dead)
            if not memory.cells:
                del self._memories[name]
        self._sweep_at = max(SWEEP_AT, 2 * len(self._cells))

    def _unlist(self, dropped: Iterable[Cell]) -> None:
        """In place, since ``touch`` holds the dictionary while it makes new cells."""
        for cell in dropped:
            if self._cells.get(cell.range) is cell:
                del self._cells[cell.range]

    def _report(self, kind: Hazard, cell: Cell, first: Point, r: Range, second: Point) -> None:
        key = (*_site(first), *_site(second))
        found = self.found.get(key)
        if found is not None:
            found.count += (first.call, second.call) != found.latest
            found.latest = (first.call, second.call)
            return
        bytes_ = shared(r, cell.range)
        assert bytes_ is not None, f"{r} and {cell.range} were linked without a common byte"
        owners = (cell.range.buf, r.buf)
        hazard = Hazard.LIFETIME if owners[0] != owners[1] else kind
        after_free = first.call > self._freed.get(owners[0], first.call)
        self.found[key] = Found(hazard, bytes_, first, second, owners, after_free, latest=(first.call, second.call))


def _seen(cell: Cell, host_clock: Clock) -> bool:
    return all(host_clock[point.lane] >= point.epoch for point in (*cell.writes(), *cell.reads.values()))


def _site(point: Point) -> tuple[str, object, int]:
    """What makes two accesses one site: their name, and the line of code that made them."""
    code = point.code
    return point.name, code, line_of(code, point.offset) if isinstance(code, CodeType) else 0
