"""Queued ops of which one runs at a time, in an order that a chooser decides."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from refimpl.device.simulator.ops import Op
from refimpl.device.simulator.schedules.deadlock import deadlock
from refimpl.device.simulator.schedules.decisions import Decisions
from refimpl.device.simulator.schedules.runner import Device


class Chooser(Protocol):
    """Decides whose turn it is."""

    def called(self) -> None:
        """The host made a call, which was its turn."""

    def choose(self, ready: list[Op], blocked: Sequence[Op]) -> Op | None:
        """Whose turn is next.

        Args:
            ready: The ops that may run now, or do their next piece, one per lane; at least one unless the host is free.
            blocked: What the host waits for; empty if it is free.
        Returns:
            One of `ready`, or None for the host, which must then be free.
        """

    def pieces(self, op: Op) -> int:
        """Into how many pieces `op`, which begins now, is split; 1 to run it whole."""

    def yields(self, needed: list[Op]) -> Op | None:
        """The host asks in vain for what `needed` would bring nearer: one of these, or None to let it ask again. The
        answer must not be None for ever."""

    def close(self) -> None:
        """The run is over; raises if the chooser had more to say."""


class Lanes:
    """The queues of one run, and the pieces that are left of ops that have begun."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._queued: dict[int, deque[Op]] = {}
        self._begun: dict[int, tuple[int, int]] = {}
        self.clock = 0.0

    def issue(self, op: Op) -> None:
        """Puts an op at the end of its lane."""
        lane = op.queue.lane
        queued = self._queued.get(lane)
        if queued is None:
            queued = self._queued[lane] = deque()
        queued.append(op)

    def heads(self) -> list[Op]:
        """The oldest op of each lane that has one."""
        return [queued[0] for queued in self._queued.values() if queued]

    def ready(self) -> list[Op]:
        """Those of them that wait for nothing: to keep a queue's order, only these may run."""
        return [
            queued[0]
            for queued in self._queued.values()
            if queued and (not queued[0].after or all(other.done for other in queued[0].after))
        ]

    def has_begun(self, op: Op) -> bool:
        """Whether some of the op's pieces are done."""
        return op.queue.lane in self._begun

    def step(self, op: Op, pieces: Callable[[Op], int], device: Device) -> None:
        """Runs `op`, the head of its lane, whole or as the first of so many pieces; or its next piece if it has
        begun."""
        lane = op.queue.lane
        begun = self._begun.pop(lane, None) if self._begun else None
        piece, of = begun if begun is not None else (0, pieces(op))
        self._decisions.step(op, of if piece == 0 else 1, piece == of - 1)
        now = op.submit_us if op.submit_us > self.clock else self.clock
        if piece == 0:
            op.ready_us = op.start_us = now
        op.end_us = op.queue.clock = self.clock = now + op.us / of
        if of == 1:
            self._queued[lane].popleft()
            device.execute(op)
            return
        try:
            device.execute_piece(op, piece, of)
        finally:
            if op.done:
                self._queued[lane].popleft()
            else:
                self._begun[lane] = (piece + 1, of)

    def forget_branches(self) -> None:
        """Drops the lanes of past graph launches, which nobody can issue to again."""
        if len(self._queued) > 64:
            self._queued = {lane: queued for lane, queued in self._queued.items() if queued or lane > 0}


class LanesRun:
    """A run in which one op runs at a time, so that its times tell the order and are no prediction: what ran before
    the host went on ended by the host's clock."""

    def __init__(self, chooser: Chooser, lanes: Lanes, decisions: Decisions) -> None:
        self._chooser, self._lanes, self._decisions = chooser, lanes, decisions

    def issue(self, op: Op) -> None:
        """Takes an op into its lane."""
        self._lanes.issue(op)

    def progress(self, device: Device) -> None:
        """The host made a call, and is free."""
        self.finish((), device)

    def finish(self, ops: Sequence[Op], device: Device) -> None:
        """The host made a call, and is blocked for `ops`."""
        self._decisions.host()
        self._chooser.called()
        lanes, choose, pieces = self._lanes, self._chooser.choose, self._chooser.pieces
        blocked = ops
        while True:
            ready = lanes.ready()
            if blocked:
                blocked = [op for op in blocked if not op.done]
                if blocked and not ready:
                    raise deadlock(lanes.heads(), blocked)
            op = choose(ready, blocked)
            if op is None:
                break
            lanes.step(op, pieces, device)
        if lanes.clock > device.host_us:
            device.host_us = lanes.clock
        lanes.forget_branches()

    def poll(self, op: Op, device: Device) -> None:
        """The host asks for `op`, and is free."""
        self.progress(device)
        if op.done:
            return
        needed = ancestors((op,))
        ready = [head for head in self._lanes.ready() if head in needed]
        chosen = self._chooser.yields(ready) if ready else None
        if chosen is not None:
            self._lanes.step(chosen, self._chooser.pieces, device)
            device.host_us = max(device.host_us, self._lanes.clock)

    def close(self) -> None:
        """The run is over."""
        self._chooser.close()


def ancestors(ops: Sequence[Op]) -> set[Op]:
    """The queued ops that must run before `ops`, and themselves."""
    found, todo = set[Op](), list(ops)
    while todo:
        at = todo.pop()
        if at.done or at in found:
            continue
        found.add(at)
        todo.extend(at.after)
        if at.previous is not None:
            todo.append(at.previous)
    return found
