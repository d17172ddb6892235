"""What a schedule is to the machine, and the machine to a schedule.

A *decision point* is a call of the host: an op issued, a graph launched, time spent, a synchronize, a query. There the
schedule says which queued ops run before the host goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from refimpl.device.simulator.costs import CostModel
from refimpl.device.simulator.ops import Op
from refimpl.device.simulator.schedules.decisions import Decisions


class Device(Protocol):
    """What a schedule sees of the machine."""

    host_us: float

    def execute(self, op: Op) -> None:
        """Runs one op, whose times are set."""

    def execute_piece(self, op: Op, piece: int, pieces: int) -> None:
        """Does one of the pieces of an op, in turn from 0; the op has run when the last is done."""

    @property
    def resolving(self) -> bool:
        """Durations of the queued ops are known: no cost region is open."""


class Runner(Protocol):
    """One run of a schedule. Each call of `progress`, `finish` or `poll` is one decision point."""

    def issue(self, op: Op) -> None:
        """Takes an op into its queue."""

    def progress(self, device: Device) -> None:
        """The host made a call: the device runs what this schedule wants it to have run by now."""

    def finish(self, ops: Sequence[Op], device: Device) -> None:
        """The host is blocked for `ops`: runs them and all that comes before, and moves the host's clock to their end.

        Raises:
            RuntimeError: Nothing can run, a deadlock.
        """

    def poll(self, op: Op, device: Device) -> None:
        """The host asks whether `op` has run: a poll loop must come to an end."""

    def close(self) -> None:
        """The run is over; raises if that is not where the schedule ends."""


class Schedule(Protocol):
    """A schedule as the user names it; each use of it begins afresh."""

    @property
    def costs(self) -> CostModel:
        """What ops cost."""

    def start(self, decisions: Decisions) -> Runner:
        """A new run, which notes its decisions."""
