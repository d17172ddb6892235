"""Names for streams, events, buffers and graphs: given ones, else numbered by first use."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import torch

from refimpl.device.simulator.buffers import Access, Buffer, Memory
from refimpl.device.simulator.graphs import CUDAGraph
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.streams import Event, Stream, priority
from refimpl.device.simulator.tensor import SimTensor
from refimpl.program import LEGACY, Mem, Range
from refimpl.program import Buffer as ProgramBuffer
from refimpl.program import Stream as ProgramStream


class Names:
    """What each thing is called in the program."""

    def __init__(self) -> None:
        self._given: dict[Any, str] = {}
        self._found: dict[Any, str] = {}
        self._kept: list[Any] = []
        self.buffers: dict[str, ProgramBuffer] = {}
        self.streams: dict[str, ProgramStream] = {}

    def give(self, thing: Any, name: str) -> None:
        """Names a stream, an event, a graph, or the memory that a tensor lies in.

        Raises:
            TypeError: Something else.
            ValueError: Another thing has the name, or it belongs to another lane.
        """
        key = _key(thing)
        if key[0] == "stream" and (name in (LEGACY, "host") or name.startswith("agent ")):
            raise ValueError(f"recording.name(…, {name!r}): the name belongs to another lane, so choose another")
        if any(other == name and at != key for at, other in self._given.items()):
            raise ValueError(f"recording.name(…, {name!r}): another thing has this name, so choose another")
        self._given[key] = name
        self._kept.append(thing)

    def fresh(self) -> Names:
        """The given names, with nothing found yet."""
        names = Names()
        names._given = self._given
        return names

    def given(self, key: Any) -> bool:
        """Whether a name was given."""
        return key in self._given

    def stream(self, id_: int) -> str:
        """The name of a stream."""
        name = self._name(("stream", id_), "default" if id_ == 0 else f"stream{id_}")
        self.streams.setdefault(name, ProgramStream(priority=priority(id_)))
        return name

    def event(self, event: Any) -> str:
        """The name of an event."""
        return self._name(("event", id(event)), self._numbered("event"))

    def graph(self, capture: Any, otherwise: str) -> str:
        """The name of a graph."""
        return self._given.get(("graph", id(capture)), otherwise)

    def range(self, access: Access) -> Range:
        """The bytes of an access, in the words of a program."""
        buffer = access.buffer
        name = self._name(("buffer", buffer.serial), self._numbered(buffer.memory.value))
        self.buffers.setdefault(name, ProgramBuffer(buffer.bytes, _MEMORY[buffer.memory]))
        return Range(name, access.offset, access.length, access.rows, access.stride)

    def _name(self, key: Any, otherwise: str) -> str:
        if key in self._given:
            return self._given[key]
        if key not in self._found:
            taken = {*self._given.values(), *self._found.values()}
            self._found[key] = next(name for name in _candidates(otherwise) if name not in taken)
        return self._found[key]

    def _numbered(self, stem: str) -> str:
        return f"{stem}{1 + sum(name.startswith(stem) for name in self._found.values())}"


def _candidates(stem: str) -> Iterator[str]:
    """`stem`, and then what to call a thing where the name was given to another."""
    yield stem
    yield from (f"{stem}_{number}" for number in count(2))


_MEMORY = {Memory.DEVICE: Mem.DEVICE, Memory.PINNED: Mem.PINNED, Memory.PAGEABLE: Mem.PAGEABLE}


def _key(thing: Any) -> tuple[str, int]:
    if isinstance(thing, Stream):
        return "stream", thing.stream_id
    if isinstance(thing, Event):
        return "event", id(thing)
    if isinstance(thing, CUDAGraph):
        return "graph", id(thing.capture)
    if isinstance(thing, SimTensor):
        return "buffer", thing.buffer.serial
    if isinstance(thing, torch.Tensor):
        return "buffer", DEVICE.host_buffers.of(thing).serial
    if isinstance(thing, Buffer):
        return "buffer", thing.serial
    raise TypeError(f"recording.name({thing!r}): name a stream, an event, a captured graph or a tensor of the device")
