"""Names for streams, events, buffers and graphs: given ones, else numbered by first use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from refimpl.program import LEGACY, Range
from refimpl.program import Buffer as ProgramBuffer
from refimpl.program import Stream as ProgramStream
from refimpl.record.work import Access, Buffer, Lane, Mark

Key = tuple[str, int]
KeyOf = Callable[[Any], Key | None]
"""What tells a thing that a user names from others, or None for a thing that cannot be named."""


class Names:
    """What each thing is called in the program; naming a tensor does not keep its memory.

    Args:
        key_of: Knows the device's streams, events, graphs and tensors.
    """

    def __init__(self, key_of: KeyOf) -> None:
        self._key_of = key_of
        self._given: dict[Key, str] = {}
        self._found: dict[Key, str] = {}
        self._numbers: Counter[str] = Counter()
        self._taken: set[str] = set()
        self.buffers: dict[str, ProgramBuffer] = {}
        self.streams: dict[str, ProgramStream] = {}

    def give(self, thing: Any, name: str) -> None:
        """Names a stream, an event, a graph, or the memory that a tensor lies in.

        Raises:
            TypeError: Something else.
            ValueError: Another thing has the name, or it belongs to another lane.
        """
        key = self._key_of(thing)
        if key is None:
            raise TypeError(
                f"recording.name({thing!r}): name a stream, an event, a captured graph or a tensor of the device"
            )
        if key[0] == "stream" and (name in (LEGACY, "host") or name.startswith("agent ")):
            raise ValueError(f"recording.name(…, {name!r}): the name belongs to another lane, so choose another")
        if any(other == name and at != key for at, other in self._given.items()):
            raise ValueError(f"recording.name(…, {name!r}): another thing has this name, so choose another")
        self._given[key] = name

    def fresh(self) -> Names:
        """The given names, with nothing found yet."""
        names = Names(self._key_of)
        names._given = self._given
        return names

    def given(self, key: Key) -> bool:
        """Whether a name was given."""
        return key in self._given

    def stream(self, lane: Lane) -> str:
        """The name of a stream."""
        name = self._name(("stream", lane.key), lane.stem or "stream", lane.stem is None)
        self.streams.setdefault(name, ProgramStream(priority=lane.priority))
        return name

    def event(self, mark: Mark) -> str:
        """The name of an event."""
        return self._name(("event", mark.serial), "event")

    def graph(self, serial: int, otherwise: str) -> str:
        """The name of a graph."""
        return self._given.get(("graph", serial), otherwise)

    def block(self, serial: int) -> str:
        """The name of a block of the caching allocator."""
        return self._name(("block", serial), "block")

    def buffer(self, buffer: Buffer) -> str:
        """The name of a buffer."""
        name = self._name(("buffer", buffer.serial), buffer.stem or buffer.mem.value)
        self.buffers.setdefault(name, ProgramBuffer(buffer.bytes, buffer.mem))
        return name

    def range(self, access: Access) -> Range:
        """The bytes of an access, in the words of a program."""
        return Range(self.buffer(access.buffer), access.offset, access.length, access.rows, access.stride)

    def _name(self, key: Key, stem: str, numbered: bool = True) -> str:
        found = self._given.get(key) or self._found.get(key)
        if found is None:
            self._numbers[stem] += 1
            otherwise = f"{stem}{self._numbers[stem]}" if numbered else stem
            given = self._given.values()
            found = next(name for name in _candidates(otherwise) if name not in self._taken and name not in given)
            self._found[key] = found
            self._taken.add(found)
        return found


def _candidates(stem: str) -> Iterator[str]:
    """`stem`, and then what to call a thing where the name was given to another."""
    yield stem
    yield from (f"{stem}_{number}" for number in count(2))
