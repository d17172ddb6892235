"""How fast the host is at this moment: a fixed set of calls such as a step makes, timed beside what is measured."""

import statistics

import torch

from refimpl import device as devices
from refimpl.lessons.bench_engine.bounds import captured

SETS = 64
"""So few that their launches do not fill a stream's queue, which would hold the host."""


class HostReference:
    """A fixed set of calls: record, wait, a copy from pinned memory, an operator, a replay of a graph of one kernel.

    The host of a lent machine may be twice as slow in one second as in the next. What a row says of host work is worth
    as much as what this says beside it: the set never changes, so where its time does, the host has changed.

    Args:
        device: `cuda` or `sim`.

    Order:
        Making it captures a graph, and blocks the host.
    """

    def __init__(self, device: str) -> None:
        self._device, self._dev = device, devices.get(device)
        self._from, self._to = self._dev.Stream(), self._dev.Stream()
        self._event = self._dev.Event()
        self._staged = devices.pinned(1, torch.int64, device)
        self._cell = torch.zeros(1, dtype=torch.int64, device=device)
        self._graph = captured(self._dev, lambda: self._cell.add_(1))

    def us(self) -> float:
        """The median time of a set, in microseconds.

        Order:
            On streams of its own, beside nothing else; the host blocks until the device is idle, before and after.
        """
        self._dev.synchronize()
        times = []
        with torch.inference_mode():
            for _ in range(SETS):
                begin = devices.host_clock_us(self._device)
                self._once()
                times.append(devices.host_clock_us(self._device) - begin)
        self._dev.synchronize()
        return statistics.median(times)

    def _once(self) -> None:
        self._event.record(self._from)
        # Safe because: nothing on either stream is read by the host, and the cell is written in the order of one.
        self._to.wait_event(self._event)
        with self._dev.stream(self._to):
            self._cell.copy_(self._staged, non_blocking=True)
            self._cell.add_(1)
            self._graph.replay()
