"""The schedule that looks for the order in which a program goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Literal, get_args

from refimpl.device.simulator.costs import CostModel, refuse_no_costs
from refimpl.device.simulator.schedules.decisions import Decisions
from refimpl.device.simulator.schedules.lanes import Chooser, Lanes, LanesRun
from refimpl.device.simulator.schedules.runner import Runner
from refimpl.device.simulator.schedules.strategies import Bounded, Eager, Priorities, scale

Strategy = Literal["random", "pct", "bounded"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

_TORN = (0.0, 0.1, 0.5)


@dataclass(frozen=True)
class Adversary:
    """Any legal order, drawn by a seed.

    An order is legal if each queue runs in order, a wait comes after the record it is bound to, and no op runs before
    the host issued it. The host is a lane among the others: it may go on while the device stands still, and wait while
    it runs. Nodes on parallel branches of a graph interleave with each other and with other streams.

    One op runs at a time, so its times tell the order and are no prediction. That many seeds find nothing proves
    nothing.

    Some ops are torn: such an op reads at its first piece, what it writes lands piece by piece in the order of memory,
    and ops of other lanes run in between. The op has run, and waits for it are over, after its last piece. An element
    of up to 8 bytes lands whole. Only elements whose bytes change are stored, so an element that is rewritten with
    its old value counts as written at the first piece.

    Args:
        seed: The same seed and program give the same order.
        costs: The cost model, for the clocks.
        change: `random`: chance, per call of the host, that a lane's eagerness is drawn anew.
        strategy: How the order is drawn; None takes them in turn, by the seed:
            `random`, lanes eager or stalled by turns: finds most stale reads, promises nothing;
            `pct`, priorities with few changes: a lower bound of the chance for a bug that needs `depth` orderings;
            `bounded`, few preemptions: finds what one long stall shows, in orders that are easy to read.
        depth: `pct`: how many orderings the bug needs; None draws 1, 2 or 3.
        preemptions: `bounded`: how many switches away from a lane that could go on; None draws 0 to 3.
        steps: `pct` and `bounded`: within how many turns (calls of the host, ops and pieces) the changes lie; None
            draws 8, 32, 128, 512 or 2048.
        torn: Chance that an op which writes is split in 2 to 4 pieces; True draws the chance too, False and 0 never
            split.
    Example:
        with dev.schedule(dev.Adversary(seed=3)) as run:
            step()
        print(run.id)
    """

    seed: int
    costs: CostModel = field(default_factory=CostModel)
    change: float = 0.1
    strategy: Strategy | None = None
    depth: int | None = None
    preemptions: int | None = None
    steps: int | None = None
    torn: float | bool = True

    def __post_init__(self) -> None:
        if type(self.seed) is not int or self.seed < 0:
            raise ValueError(f"Adversary(seed={self.seed!r}): use an integer from 0")
        refuse_no_costs("Adversary", self.costs)
        for name in ("change", "torn"):
            chance = getattr(self, name)
            if not isinstance(chance, (int, float)) or not 0.0 <= chance <= 1.0:
                raise ValueError(f"Adversary({name}={chance!r}): use a chance between 0 and 1")
        if self.strategy not in (None, *STRATEGIES):
            raise ValueError(f"Adversary(strategy={self.strategy!r}): use {', '.join(STRATEGIES)} or None")
        for name, least in (("depth", 1), ("preemptions", 0), ("steps", 1)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < least):
                raise ValueError(f"Adversary({name}={value!r}): use an integer from {least}, or None")

    def start(self, decisions: Decisions) -> Runner:
        """A new run, which draws from the seed."""
        return LanesRun(self._chooser(Random(self.seed)), Lanes(decisions), decisions)

    def _chooser(self, random: Random) -> Chooser:
        torn = random.choice(_TORN) if self.torn is True else float(self.torn)
        steps = self.steps or scale(random)
        strategy = self.strategy or STRATEGIES[self.seed % len(STRATEGIES)]
        if strategy == "pct":
            return Priorities(random, torn, self.depth or random.randint(1, 3), steps)
        if strategy == "bounded":
            preemptions = random.randint(0, 3) if self.preemptions is None else self.preemptions
            return Bounded(random, torn, preemptions, steps)
        return Eager(random, torn, self.change)
