"""Numbers for things that have none, which do not keep the things."""

from __future__ import annotations

from itertools import count
from typing import Any
from weakref import ref

_serials = count(1)


class Serials:
    """A number for each thing, by identity; a thing that is made later at the same address has another."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, int]] = {}

    def of(self, thing: Any) -> int:
        """The thing's number."""
        at = id(thing)
        known = self._known.get(at)
        if known is None:
            known = self._known[at] = (ref(thing, lambda _: self._known.pop(at, None)), next(_serials))
        return known[1]
