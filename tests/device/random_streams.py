"""Random code for the simulated device, for tests that compare two runs of it to the byte."""

from collections.abc import Callable
from random import Random
from typing import Any

import torch

from refimpl import device

ELEMENTS = 6


class Code:
    """Some calls on three streams, drawn from a seed; `run` makes them anew and gives all bytes that come out."""

    def __init__(self, dev: Any, seed: int, calls: int = 25) -> None:
        self._dev, self._seed, self._calls = dev, seed, calls

    def run(self) -> list[Any]:
        dev, random = self._dev, Random(self._seed)
        torch.manual_seed(5)
        self._streams = [dev.Stream() for _ in range(3)]
        self._tensors = [torch.arange(ELEMENTS, dtype=torch.float32, device="sim") for _ in range(3)]
        self._table = torch.zeros(4, ELEMENTS, device="sim")
        self._pinned = device.pinned(ELEMENTS, torch.float32, "sim")
        self._graph = self._captured()
        self._events: list[Any] = []
        self._seen: list[Any] = []
        dev.synchronize()
        for _ in range(self._calls):
            with dev.stream(random.choice(self._streams)):
                random.choice(_CALLS)(self, random)
        dev.synchronize()
        return [*self._seen, *(t.tolist() for t in self._tensors), self._table.tolist(), self._pinned.tolist()]

    def _captured(self) -> Any:
        dev, graph, side = self._dev, self._dev.CUDAGraph(), self._dev.Stream()
        with dev.graph(graph):
            begun = dev.current_stream().record_event()
            side.wait_event(begun)
            with dev.stream(side):
                self._tensors[0].add_(self._tensors[1])
                self._tensors[0].mul_(0.5)
            self._tensors[1].sub_(self._tensors[2])
            self._table[3].copy_(self._tensors[1])
            dev.current_stream().wait_stream(side)
        return graph

    def add(self, random: Random) -> None:
        random.choice(self._tensors).add_(random.randint(1, 9))

    def fresh(self, random: Random) -> None:
        at = random.randrange(3)
        self._tensors[at] = self._tensors[random.randrange(3)] * 2 + 1

    def copy(self, random: Random) -> None:
        random.choice(self._tensors).copy_(random.choice(self._tensors))

    def foreach(self, random: Random) -> None:
        torch._foreach_add_([random.choice(self._tensors), random.choice(self._tensors)], random.randint(1, 5))

    def row(self, random: Random) -> None:
        self._table[torch.tensor([random.randrange(4)]).to("sim")] = random.choice(self._tensors)[None]

    def draw(self, random: Random) -> None:
        random.choice(self._tensors).uniform_()

    def out(self, random: Random) -> None:
        torch.mul(self._tensors[0], self._tensors[1], out=self._tensors[2])

    def to_host(self, random: Random) -> None:
        self._pinned.copy_(random.choice(self._tensors), non_blocking=True)

    def to_device(self, random: Random) -> None:
        random.choice(self._tensors).copy_(self._pinned, non_blocking=True)

    def look(self, random: Random) -> None:
        self._seen.append(self._pinned.tolist())

    def write(self, random: Random) -> None:
        self._pinned.fill_(random.random())

    def read(self, random: Random) -> None:
        self._seen.append(random.choice(self._tensors).sum().item())

    def replay(self, random: Random) -> None:
        self._graph.replay()

    def record(self, random: Random) -> None:
        self._events.append(self._dev.current_stream().record_event())

    def wait(self, random: Random) -> None:
        if self._events:
            random.choice(self._events).wait()

    def poll(self, random: Random) -> None:
        if self._events:
            event = random.choice(self._events)
            while not event.query():
                self._seen.append("asked")

    def synchronize(self, random: Random) -> None:
        self._dev.current_stream().synchronize()


_CALLS: list[Callable[[Code, Random], None]] = [
    Code.add,
    Code.fresh,
    Code.copy,
    Code.foreach,
    Code.row,
    Code.draw,
    Code.out,
    Code.to_host,
    Code.to_device,
    Code.look,
    Code.write,
    Code.read,
    Code.replay,
    Code.record,
    Code.wait,
    Code.poll,
    Code.synchronize,
]
