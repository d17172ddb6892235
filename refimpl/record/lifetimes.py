"""Whose memory was handed on: the buffers whose allocation and end a program has to tell."""

from __future__ import annotations

from collections.abc import Iterable

from refimpl.record.entries import Entry, Issued, Launched, Lent, Touched
from refimpl.record.work import Buffer, Lane


class Lifetimes:
    """The buffers of blocks with two or more owners of which one is used beside the stream it was allocated on, and
    those that `record_stream` names.

    All uses of other blocks lie on one stream, in order, so that telling of their owners could change no verdict.

    Args:
        entries: What was noted.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        owners: dict[int, set[Buffer]] = {}
        lanes: dict[int, set[Lane | None]] = {}
        lent = set[Buffer]()
        for entry in entries:
            if isinstance(entry, Lent):
                lent.add(entry.buffer)
            for buffer, lane in _uses(entry):
                if buffer.block is not None:
                    owners.setdefault(buffer.block, set()).add(buffer)
                    lanes.setdefault(buffer.block, {buffer.lane}).add(lane)
        self._told = lent & {buffer for found in owners.values() for buffer in found}
        for block, found in owners.items():
            if len(found) > 1 and len(lanes[block]) > 1:
                self._told |= found

    def __contains__(self, buffer: Buffer) -> bool:
        return buffer in self._told


def _uses(entry: Entry) -> Iterable[tuple[Buffer, Lane | None]]:
    if isinstance(entry, Touched):
        yield entry.access.buffer, None
    elif isinstance(entry, Issued):
        yield from ((one.buffer, work.lane) for work in entry.works for one in (*work.reads, *work.writes))
    elif isinstance(entry, Launched):
        yield from ((one.buffer, entry.lane) for work in entry.works for one in (*work.reads, *work.writes))
