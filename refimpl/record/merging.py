"""Several pieces of work as one: what they touch together, and how long they take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from refimpl.program import Range
from refimpl.record.cells import Cells
from refimpl.record.names import Names
from refimpl.record.work import Access, Buffer, Work


def ranges(accesses: Iterable[Access], names: Names) -> tuple[Range, ...]:
    """Accesses in the words of a program."""
    return tuple(names.range(access) for access in accesses)


def merged(works: Sequence[Work], private: set[Buffer]) -> tuple[list[Access], list[Access]]:
    """What several pieces of work read from outside and leave behind."""
    reads, writes = dict[Access, None](), dict[Access, None]()
    for work in works:
        reads.update(dict.fromkeys(access for access in found(work.reads) if access not in writes))
        writes.update(dict.fromkeys(found(work.writes)))
    if len(works) == 1:
        return list(reads), list(writes)
    return [a for a in reads if a.buffer not in private], [a for a in writes if a.buffer not in private]


def found(touched: Iterable[Access | Cells]) -> Iterable[Access]:
    """The bytes of what is touched, index tensors looked up."""
    for one in touched:
        if isinstance(one, Cells):
            yield from one.ranges
        else:
            yield one


def duration(works: Iterable[Work]) -> float | None:
    """Duration of several pieces of work, without the last digits that differences of large times leave."""
    times = [work.times.us for work in works if work.times is not None]
    return round(sum(times), 6) if times else None
