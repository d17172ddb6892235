"""The schedule that has been seen before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from refimpl.device.simulator.costs import CostModel, refuse_no_costs
from refimpl.device.simulator.ops import Op
from refimpl.device.simulator.schedules.deadlock import op_name, waits_for
from refimpl.device.simulator.schedules.decisions import Decisions
from refimpl.device.simulator.schedules.lanes import Lanes, LanesRun
from refimpl.device.simulator.schedules.runner import Runner
from refimpl.program import HOST, UserError, turns_of


@dataclass(frozen=True)
class Replay:
    """The order that an id names: the same program gives the same bytes again.

    Random numbers too: a run begins with the device's default generator as it was last seeded. A generator of the
    program's own, PyTorch's for the host included, is the program's to seed. And it begins with the stream pool where
    that stands outside, so a program that shares streams with its surroundings finds those that it found.

    While named steps last, the order is strict: where the program cannot take a step, it is another program, and that
    is an error. After that each op runs as soon as it may, in the order of issue; `Replay("")` runs the whole program
    so.

    Lanes are numbered from 1 in the order in which the run gives them work, and branches of launched graphs from -1
    down, so that an id does not depend on which streams of the pool a program was given.

    Args:
        id: As a run's `id` gives it, or written by hand: `refimpl.program.schedule_id` says how.
        costs: The cost model, for the clocks.
    Raises:
        UserError: The text names no order.
    Example:
        with dev.schedule(dev.Replay("h3.2.1/2")):
            step()
    """

    id: str
    costs: CostModel = field(default_factory=CostModel)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str):
            raise TypeError(f"Replay({self.id!r}): use the id of a run, as run.id gives it")
        refuse_no_costs("Replay", self.costs)
        turns_of(self.id)

    def start(self, decisions: Decisions) -> Runner:
        """A new run from the first step."""
        lanes = Lanes(decisions)
        return LanesRun(_Named(self.id, lanes), lanes, decisions)


class _Named:
    """Takes the named turns one by one, then the oldest op that is ready."""

    def __init__(self, id_: str, lanes: Lanes) -> None:
        self._id, self._lanes = id_, lanes
        self._turns, self._at = turns_of(id_), 0
        self._pieces = 1
        self._error: UserError | None = None

    def called(self) -> None:
        if self._error is not None:
            raise self._error
        if self._at < len(self._turns):
            if self._turns[self._at].lane is not HOST:
                raise self._misfit("stands before the host's first call")
            self._at += 1

    def choose(self, ready: list[Op], blocked: Sequence[Op]) -> Op | None:
        if self._at == len(self._turns):
            self._pieces = 1
            return min(ready, key=_age) if ready else None
        turn = self._turns[self._at]
        if turn.lane is HOST:
            if blocked:
                raise self._misfit(
                    f"lets the host go on, which is blocked for {op_name(blocked[0])} or has made its last call"
                )
            return None
        op = next((op for op in ready if op.queue.lane == turn.lane), None)
        if op is None:
            head = next((op for op in self._lanes.heads() if op.queue.lane == turn.lane), None)
            why = "has no op" if head is None else f"is at {head.name!r}, which waits for {waits_for(head)}"
            raise self._misfit(f"runs lane {turn.lane}, which {why}")
        if turn.pieces > 1 and self._lanes.has_begun(op):
            raise self._misfit(f"splits {op_name(op)}, which is split already")
        self._at += 1
        self._pieces = turn.pieces
        return op

    def pieces(self, op: Op) -> int:
        return self._pieces

    def yields(self, needed: list[Op]) -> Op | None:
        return None

    def close(self) -> None:
        if self._at < len(self._turns):
            raise self._misfit("comes after the program's end")

    def _misfit(self, why: str) -> UserError:
        self._error = UserError(
            f"schedule {_short(self._id)!r}: step {self._at + 1} of {len(self._turns)} {why}: "
            "the schedule belongs to another program"
        )
        return self._error


def _age(op: Op) -> int:
    return op.seq


def _short(id_: str) -> str:
    return id_ if len(id_) <= 60 else f"{id_[:57]}..."
