"""The schedule of virtual time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from refimpl.device.simulator.costs import CostModel, refuse_no_costs
from refimpl.device.simulator.ops import Kind, Op, Queue
from refimpl.device.simulator.schedules.deadlock import deadlock
from refimpl.device.simulator.schedules.decisions import Decisions
from refimpl.device.simulator.schedules.runner import Device, Runner


@dataclass(frozen=True)
class Timed:
    """Ops run in virtual time: an op starts when it is issued, its queue is free and its waits are over, and takes
    what the cost model says.

    An op reads and writes at one instant, its end. So a write that takes 4 ms is not there for an unfenced read 1 ms
    later, and a read that takes 4 ms sees an unfenced write 1 ms later. Ops on different streams do not slow each
    other. Of ops that end at the same time, the one whose start was settled first runs first.

    Args:
        costs: The cost model.
    """

    costs: CostModel = field(default_factory=CostModel)

    def __post_init__(self) -> None:
        refuse_no_costs("Timed", self.costs)

    def start(self, decisions: Decisions) -> Runner:
        """A new run from time zero."""
        return _TimedRun(decisions, self.costs)


class _TimedRun:
    def __init__(self, decisions: Decisions, costs: CostModel) -> None:
        self._decisions, self._costs = decisions, costs
        self._issued: deque[Op] = deque()
        self._running: list[tuple[float, int, Op]] = []
        self._places = count()

    def issue(self, op: Op) -> None:
        self._issued.append(op)

    def progress(self, device: Device) -> None:
        self._decisions.host()
        self._advance(device)

    def poll(self, op: Op, device: Device) -> None:
        self.progress(device)

    def finish(self, ops: Sequence[Op], device: Device) -> None:
        self.progress(device)
        end = max((op.end_us for op in ops), default=0.0)
        if end == math.inf:
            heads: dict[Queue, Op] = {}
            for op in self._issued:
                heads.setdefault(op.queue, op)
            raise deadlock(heads.values(), ops)
        device.host_us = max(device.host_us, end)
        self._advance(device)

    def close(self) -> None:
        """A run in virtual time may end anywhere."""

    def _advance(self, device: Device) -> None:
        if not device.resolving:
            return
        if self._issued:
            self._place()
        running, now, step = self._running, device.host_us, self._decisions.step
        while running and running[0][0] <= now:
            op = heappop(running)[2]
            step(op)
            device.execute(op)

    def _place(self) -> None:
        """Gives their times to the ops for which all that comes before has its own."""
        issued = self._issued
        while issued and self._start(issued[0]):
            issued.popleft()
        if issued:
            self._pass_by()

    def _pass_by(self) -> None:
        """Does so where the oldest op waits for one still to be issued, which holds up its queue and no other."""
        held: deque[Op] = deque()
        stuck: set[Queue] = set()
        for op in self._issued:
            if op.queue in stuck or not self._start(op):
                stuck.add(op.queue)
                held.append(op)
        placed = len(held) < len(self._issued)
        self._issued = held
        if held and placed:
            self._pass_by()

    def _start(self, op: Op) -> bool:
        """Gives an op its times, when its queue is free and its waits are over; False if that is not known yet."""
        queue = op.queue
        ready = op.submit_us + self._costs.start_us
        if queue.clock > ready:
            ready = queue.clock
        op.ready_us = op.start_us = ready
        if op.after:
            ready = max(ready, self._after(op))
            if ready == math.inf:
                return False
            if op.kind is not Kind.WAIT:
                op.start_us = ready
        op.end_us = queue.clock = end = ready + op.us
        heappush(self._running, (end, next(self._places), op))
        return True

    def _after(self, op: Op) -> float:
        """When the last of the ops that `op` comes after has ended, as `op`'s queue gets to know of it."""
        cross_us = self._costs.cross_us
        return max(other.end_us + (cross_us if other.queue is not op.queue else 0.0) for other in op.after)
