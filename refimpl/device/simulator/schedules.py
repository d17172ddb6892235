"""Which legal order the simulated device takes: in virtual time, or drawn by a seed.

An order is legal if each queue runs in order, a wait comes after the record it is bound to, and no op runs before the
host issued it.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from refimpl.device.simulator.costs import CostModel
from refimpl.device.simulator.ops import Kind, Op


class Device(Protocol):
    """What a schedule sees of the machine."""

    host_us: float

    def execute(self, op: Op) -> None:
        """Runs one op, whose times are set."""

    @property
    def resolving(self) -> bool:
        """Durations of the queued ops are known: no cost region is open."""


class Runner(Protocol):
    """One run of a schedule."""

    def issue(self, op: Op) -> None:
        """Takes an op into its queue."""

    def progress(self, device: Device) -> None:
        """The host's clock moved: the device runs what this schedule wants it to have run by now."""

    def finish(self, op: Op, device: Device) -> None:
        """The host is blocked for `op`: runs it and all that comes before it, and moves the host's clock to its end."""

    def poll(self, op: Op, device: Device) -> None:
        """The host asks whether `op` has run: a poll loop must come to an end."""


class Schedule(Protocol):
    """A schedule as the user names it; each use of it begins afresh."""

    @property
    def costs(self) -> CostModel:
        """What ops cost."""

    def start(self) -> Runner:
        """A new run."""


@dataclass(frozen=True)
class Timed:
    """Ops run in virtual time: an op starts when it is issued, its queue is free and its waits are over, and takes
    what the cost model says.

    An op reads and writes at one instant, its end. So a write that takes 4 ms is not there for an unfenced read 1 ms
    later, and a read that takes 4 ms sees an unfenced write 1 ms later. Ops on different streams do not slow each
    other.

    Args:
        costs: The cost model.
    """

    costs: CostModel = field(default_factory=CostModel)

    def start(self) -> Runner:
        """A new run from time zero."""
        return _TimedRun()


class _TimedRun:
    def __init__(self) -> None:
        self._issued: deque[Op] = deque()
        self._running: list[tuple[float, int, Op]] = []

    def issue(self, op: Op) -> None:
        self._issued.append(op)

    def progress(self, device: Device) -> None:
        if not device.resolving:
            return
        issued, running = self._issued, self._running
        while issued:
            op = issued.popleft()
            queue = op.queue
            op.ready_us = ready = max(op.submit_us, queue.clock)
            for other in op.after:
                if other.end_us > ready:
                    ready = other.end_us
            op.start_us = op.ready_us if op.kind is Kind.WAIT else ready
            op.end_us = queue.clock = ready + op.us
            heapq.heappush(running, (op.end_us, op.seq, op))
        now = device.host_us
        while running and running[0][0] <= now:
            device.execute(heapq.heappop(running)[2])

    def finish(self, op: Op, device: Device) -> None:
        self.progress(device)
        if op.end_us > device.host_us:
            device.host_us = op.end_us
        self.progress(device)

    def poll(self, op: Op, device: Device) -> None:
        self.progress(device)


@dataclass(frozen=True)
class Adversary:
    """Any legal order, drawn by a seed: how eager each stream is changes at random while the program runs.

    One op runs at a time, so its times tell the order and are no prediction. A call that blocks the host runs what it
    must, and sometimes more.

    Args:
        seed: The same seed and program give the same order.
        costs: The cost model, for the clocks.
        change: Chance, per call of the host, that a stream's eagerness is drawn anew.
    """

    seed: int
    costs: CostModel = field(default_factory=CostModel)
    change: float = 0.1

    def __post_init__(self) -> None:
        if type(self.seed) is not int or self.seed < 0:
            raise ValueError(f"Adversary(seed={self.seed!r}): use an integer from 0")
        if not 0.0 <= self.change <= 1.0:
            raise ValueError(f"Adversary(change={self.change}): use a chance between 0 and 1")

    def start(self) -> Runner:
        """A new run, which draws from the seed."""
        return _AdversaryRun(Random(self.seed), self.change)


class _AdversaryRun:
    def __init__(self, random: Random, change: float) -> None:
        self._random, self._change = random, change
        self._queued: dict[int, deque[Op]] = {}
        self._eager: dict[int, float] = {}
        self._clock = 0.0

    def issue(self, op: Op) -> None:
        queued = self._queued.get(op.queue.id)
        if queued is None:
            queued = self._queued[op.queue.id] = deque()
            self._eager[op.queue.id] = self._draw()
        queued.append(op)

    def progress(self, device: Device) -> None:
        for id_ in list(self._queued):
            if self._random.random() < self._change:
                self._eager[id_] = self._draw()
        while heads := [
            q[0] for id_, q in self._queued.items() if self._enabled(q) and self._random.random() < self._eager[id_]
        ]:
            self._run(self._random.choice(heads), device)
        self._forget_lanes()

    def finish(self, op: Op, device: Device) -> None:
        needed = _ancestors(op)
        while not op.done:
            heads = [q[0] for q in self._queued.values() if self._enabled(q)]
            must = [head for head in heads if head in needed]
            self._run(self._random.choice(heads if self._random.random() < 0.3 else must), device)
        device.host_us = max(device.host_us, op.end_us)
        self._forget_lanes()

    def poll(self, op: Op, device: Device) -> None:
        self.progress(device)
        needed = _ancestors(op)
        must = [q[0] for q in self._queued.values() if self._enabled(q) and q[0] in needed]
        if must and self._random.random() < 0.5:
            self._run(self._random.choice(must), device)

    def _draw(self) -> float:
        """Stalled, eager or in between: the extremes find most stale reads."""
        return self._random.choice((0.0, 0.0, 0.2, 0.5, 0.9))

    def _enabled(self, queued: deque[Op]) -> bool:
        return bool(queued) and all(other.done for other in queued[0].after)

    def _run(self, op: Op, device: Device) -> None:
        self._queued[op.queue.id].popleft()
        op.ready_us = op.start_us = max(self._clock, op.submit_us)
        op.end_us = op.queue.clock = self._clock = op.start_us + op.us
        device.execute(op)

    def _forget_lanes(self) -> None:
        """Drops the queues of past graph launches, which nobody can issue to again."""
        if len(self._queued) > 64:
            self._queued = {id_: queued for id_, queued in self._queued.items() if queued or id_ >= 0}
            self._eager = {id_: self._eager[id_] for id_ in self._queued}


def _ancestors(op: Op) -> set[Op]:
    """The queued ops that must run before `op`, and itself."""
    found, todo = set[Op](), [op]
    while todo:
        at = todo.pop()
        if at.done or at in found:
            continue
        found.add(at)
        todo.extend(at.after)
        if at.previous is not None:
            todo.append(at.previous)
    return found
