"""One use of a schedule."""

from __future__ import annotations

from itertools import count

from refimpl.device.simulator.ops import Op, Queue
from refimpl.device.simulator.schedules.decisions import Decisions, Unnoted
from refimpl.device.simulator.schedules.runner import Schedule


class Run:
    """What `with dev.schedule(…) as run` gives: the schedule, and the id of the order that comes out.

    Args:
        schedule: The schedule.
        decisions: Where its decisions are noted.
    """

    def __init__(self, schedule: Schedule, decisions: Decisions) -> None:
        self.schedule, self.costs, self.decisions = schedule, schedule.costs, decisions
        self.runner = schedule.start(decisions)
        self._streams, self._branches = count(1), count(-1, -1)

    @property
    def id(self) -> str:
        """The order so far: `dev.Replay(run.id)` takes it again, and from its end on each op as soon as it may run.

        Raises:
            RuntimeError: The run is too long to be named.
        """
        return self.decisions.id

    @property
    def named(self) -> str | None:
        """The id; None for the run that a process begins with, which has none."""
        return None if isinstance(self.decisions, Unnoted) else self.id

    def number(self, queue: Queue) -> None:
        """Gives a queue its lane when it first gets work: from 1 for a stream, from -1 down for a graph's branch."""
        queue.lane = next(self._branches if queue.id < 0 else self._streams)

    def abandon(self) -> list[Op]:
        """Drops what is queued, so that nobody waits for it any more, and returns it."""
        dropped = self.decisions.pending()
        for op in dropped:
            op.run, op.landing, op.previous, op.after, op.done = None, None, None, (), True
        return dropped

    def __repr__(self) -> str:
        return f"<run of {self.schedule}>"
