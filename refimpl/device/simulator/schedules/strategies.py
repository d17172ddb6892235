"""Three ways to draw a legal order, each good at another kind of bug."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from refimpl.device.simulator.ops import Effect, Op
from refimpl.device.simulator.schedules.lanes import ancestors

_SCALES = (8, 32, 128, 512, 2048)
_MOST_PIECES = 4


class _Drawn:
    """What the strategies share: torn ops, and a host that asks in vain.

    Args:
        random: Where every draw comes from.
        torn: Chance that an op which writes is split as it begins.
    """

    def __init__(self, random: Random, torn: float) -> None:
        self._random, self._torn = random, torn

    def called(self) -> None:
        """Nothing is drawn when the host makes a call."""

    def pieces(self, op: Op) -> int:
        """From 2 to 4 for an op that is split."""
        if not self._torn or not isinstance(op.run, Effect) or self._random.random() >= self._torn:
            return 1
        return self._random.randint(2, _MOST_PIECES)

    def yields(self, needed: list[Op]) -> Op | None:
        """One of them, every other time."""
        return self._random.choice(needed) if self._random.random() < 0.5 else None

    def close(self) -> None:
        """An order that is drawn may end anywhere."""


class Eager(_Drawn):
    """Each lane is eager or stalled, and that changes at random while the program runs.

    It finds stale reads over short and long distances, and what takes many switches; it promises nothing. A call that
    blocks the host runs what it must, and sometimes more.

    Args:
        change: Chance, per call of the host, that a lane's eagerness is drawn anew.
    """

    def __init__(self, random: Random, torn: float, change: float) -> None:
        super().__init__(random, torn)
        self._change = change
        self._eager: dict[int, float] = {}

    def called(self) -> None:
        """Draws some lanes' eagerness anew."""
        for lane in self._eager:
            if self._random.random() < self._change:
                self._eager[lane] = self._draw()

    def choose(self, ready: list[Op], blocked: Sequence[Op]) -> Op | None:
        """Any lane that is eager enough just now, or the host."""
        if blocked:
            if self._random.random() >= 0.3:
                needed = ancestors(blocked)
                # In a deadlock nothing that is needed is ready; the rest runs first, and then the deadlock is plain.
                ready = [op for op in ready if op in needed] or ready
            return self._random.choice(ready)
        willing = [op for op in ready if self._random.random() < self._eagerness(op.queue.lane)]
        return self._random.choice(willing) if willing else None

    def _eagerness(self, lane: int) -> float:
        if len(self._eager) > 256:  # lanes below zero are one launch's and do not come back
            self._eager = {known: value for known, value in self._eager.items() if known > 0}
        found = self._eager.get(lane)
        if found is None:
            found = self._eager[lane] = self._draw()
        return found

    def _draw(self) -> float:
        """Stalled, eager or in between: the extremes find most stale reads."""
        return self._random.choice((0.0, 0.0, 0.2, 0.5, 0.9))


class Priorities(_Drawn):
    """PCT: lanes and the host have priorities drawn at random, and the highest that can go on has the turn; at
    `depth` - 1 turns drawn at random whoever would have it falls below all others.

    Guarantee: an order that goes wrong if `depth` pairs of steps come in a certain order is found by one seed with a
    chance of at least 1 / (n · k^(depth-1)), with n lanes, the host counted, and k = `steps` at least the number of
    turns (calls of the host and ops). A call by which the host asks in vain may give a lane a turn besides.

    Source: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of
    Finding Bugs", ASPLOS 2010.

    Args:
        depth: Number of orderings that the bug needs; at least 1.
        steps: Upper bound of the run's turns.
    """

    def __init__(self, random: Random, torn: float, depth: int, steps: int) -> None:
        super().__init__(random, torn)
        self._priorities: dict[int | None, float] = {}
        self._falls = {random.randrange(steps): float(at - depth) for at in range(1, depth)}
        self._turn = 0

    def choose(self, ready: list[Op], blocked: Sequence[Op]) -> Op | None:
        """The highest."""
        if len(self._priorities) > 256 + len(ready):
            self._priorities = {lane: value for lane, value in self._priorities.items() if lane is None or lane > 0}
        highest = self._highest(ready, blocked)
        fall = self._falls.pop(self._turn, None) if self._falls else None
        self._turn += 1
        if fall is None:
            return highest
        self._priorities[None if highest is None else highest.queue.lane] = fall
        return self._highest(ready, blocked)

    def _highest(self, ready: list[Op], blocked: Sequence[Op]) -> Op | None:
        best, height = None, -float("inf") if blocked else self._priority(None)
        for op in ready:
            priority = self._priority(op.queue.lane)
            if priority > height:
                best, height = op, priority
        return best

    def _priority(self, lane: int | None) -> float:
        found = self._priorities.get(lane)
        if found is None:
            found = self._priorities[lane] = self._random.random()
        return found


class Bounded(_Drawn):
    """At most `preemptions` switches away from a lane, or the host, that could go on; where one cannot go on, any
    other follows.

    Most ordering bugs need few such switches. It finds those where a lane falls behind by far, and its orders are the
    easiest to read. A call by which the host asks in vain may give a lane a turn besides.

    Args:
        preemptions: How many.
        steps: The switches lie within so many turns from the start.
    """

    def __init__(self, random: Random, torn: float, preemptions: int, steps: int) -> None:
        super().__init__(random, torn)
        self._switches = {random.randrange(steps) for _ in range(preemptions)}
        self._lane: int | None = None
        self._turn = 0

    def choose(self, ready: list[Op], blocked: Sequence[Op]) -> Op | None:
        """Whoever had the last turn, unless it cannot go on or a switch is due."""
        options: dict[int | None, Op | None] = {op.queue.lane: op for op in ready}
        if not blocked:
            options[None] = None
        due = self._turn in self._switches
        self._turn += 1
        if due and len(options) > 1:
            options.pop(self._lane, None)
        if self._lane not in options:
            self._lane = self._random.choice(list(options))
        return options[self._lane]


def scale(random: Random) -> int:
    """A guess at the number of a run's turns, which nobody knows beforehand: every size is as likely."""
    return random.choice(_SCALES)
