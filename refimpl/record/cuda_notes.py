"""What is known of an event or a graph of a GPU, kept in the object itself and so for as long as it lives.

A table of weak references would not do: PyTorch 2.11 leaves those to its events dangling, and the next event at the
same address would be taken for the one before.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from refimpl.record.cuda_graphs import CaptureNotes
from refimpl.record.work import Mark

_MARK, _NOTES, _SERIAL = "_refimpl_mark", "_refimpl_notes", "_refimpl_serial"
_serials = count(1)


class Region:
    """A named region; each entry into one is another."""

    def __init__(self, name: str) -> None:
        self.name = name


def serial_of(thing: Any) -> int:
    """A number that tells an event or a graph from others."""
    found: int | None = vars(thing).get(_SERIAL)
    if found is None:
        found = next(_serials)
        setattr(thing, _SERIAL, found)
    return found


def mark_of(event: Any, shared: bool) -> Mark:
    """The mark of an event; `shared` says of a new one whether somebody may hold it."""
    found: Mark | None = vars(event).get(_MARK)
    if found is None:
        found = Mark(serial_of(event), shared)
        setattr(event, _MARK, found)
    return found


def notes_of(graph: Any) -> CaptureNotes | None:
    """What a graph holds, if its capture was recorded."""
    found: CaptureNotes | None = vars(graph).get(_NOTES)
    return found


def keep_notes(graph: Any, notes: CaptureNotes | None) -> None:
    """Says what a graph holds; None for nothing that is known."""
    setattr(graph, _NOTES, notes)
