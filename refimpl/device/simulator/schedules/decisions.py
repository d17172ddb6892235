"""The order of one run, noted as it comes out, and the id that names it."""

from __future__ import annotations

from collections import deque

from refimpl.device.simulator.ops import Op
from refimpl.program import HOST, Turn, schedule_id
from refimpl.program.schedule_id import MOST_TURNS


class Decisions:
    """Notes who had each turn.

    The id leaves out the end of the order where every op ran as soon as it could, in the order of issue, since that is
    what a replay does by itself. A turn counts as such an end where it took the oldest op that had not run, or where
    the host went on and nothing was left to run.
    """

    def __init__(self) -> None:
        self._turns: list[int | Turn | None] = []
        self._chosen = 0
        self._pending: deque[Op] = deque()  # in the order of issue; the first has not run
        self._fresh: Op | None = None

    def issued(self, op: Op) -> None:
        """The host issued `op`, in the call whose turn is noted next."""
        self._pending.append(op)
        if self._fresh is None:
            self._fresh = op

    def host(self) -> None:
        """The host's turn: it made a call."""
        self._turns.append(HOST)
        pending = self._pending
        if pending and pending[0] is not self._fresh:
            self._chosen = len(self._turns)
        self._fresh = None

    def step(self, op: Op, pieces: int = 1, last: bool = True) -> None:
        """The turn of `op`, which is about to run.

        Args:
            op: An op that was issued and has not run.
            pieces: Into how many pieces it is split, where it begins now; 1 where it is whole or goes on.
            last: It has run after this turn.
        """
        lane, pending = op.queue.lane, self._pending
        oldest = pending[0] is op
        self._turns.append(lane if pieces == 1 else Turn(lane, pieces))
        if not oldest or pieces > 1:
            self._chosen = len(self._turns)
        if last and oldest:
            pending.popleft()
            while pending and pending[0].done:
                pending.popleft()

    def pending(self) -> list[Op]:
        """What has been issued and has not run."""
        return [op for op in self._pending if not op.done]

    @property
    def id(self) -> str:
        """The order so far, as a text that a replay takes.

        Raises:
            RuntimeError: It is too long to be named.
        """
        if self._chosen > MOST_TURNS:
            raise RuntimeError(
                f"sim: the run took {self._chosen:,} steps, more than the {MOST_TURNS:,} that an id may name: "
                "run less of the program under one schedule"
            )
        return schedule_id(turn if isinstance(turn, Turn) else Turn(turn) for turn in self._turns[: self._chosen])


class Unnoted(Decisions):
    """Notes nothing: for the run that a process begins with and never ends."""

    def issued(self, op: Op) -> None:
        """Nothing."""

    def host(self) -> None:
        """Nothing."""

    def step(self, op: Op, pieces: int = 1, last: bool = True) -> None:
        """Nothing."""
