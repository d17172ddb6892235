"""What an exploration found: races with an order that shows each, a deadlock, and how much was searched."""

from dataclasses import dataclass
from math import log10
from typing import Any

from refimpl.order.explore_witness import Witness
from refimpl.order.report import Deadlock, Hazard, Touch
from refimpl.program import Range, Verdict

LONGEST = 4000
"""Digits of the longest count that JSON gets as a number: Python refuses to write or read much longer ones."""


@dataclass(frozen=True)
class Overtaking:
    """Two accesses that race: some order has them the wrong way round.

    Args:
        pair: indices of the two ops, in the order of issue; two nodes of one launch give one index twice.
        kind: the hazard.
        bytes: the first bytes at stake.
        first, second: the two accesses, in the order of issue.
        witness: the shortest order that shows it; None where the time was up.
    """

    pair: tuple[int, int]
    kind: Hazard
    bytes: Range
    first: Touch
    second: Touch
    witness: Witness | None

    def __str__(self) -> str:
        return f"{self.kind} on {self.bytes}: {self.first} and {self.second} can come in either order"


@dataclass(frozen=True)
class Exploration:
    """What a search through the orders of a program found.

    Args:
        id: the program's.
        verdict: None where a bound was hit before it was certain.
        races: one for each pair of ops.
        deadlock: where everything stands still for good.
        states, transitions, revisits, asleep: states visited, moves followed, moves that led to a visited state, moves
            that sleep sets left out.
        all_states, orders, traces: how many there are: states, complete orders of all moves, and classes of orders that
            no access can tell apart; None where counting them hit a bound.
        bound: which bound ended the search, and how far it came.
        disputed: pages or versions differ on this program.
    """

    id: str
    verdict: Verdict | None
    races: tuple[Overtaking, ...]
    deadlock: Deadlock | None
    states: int
    transitions: int
    revisits: int
    asleep: int
    all_states: int | None
    orders: int | None
    traces: int | None
    bound: str | None
    disputed: bool = False

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """The ops of each race, as ``Program.racing_ops`` lists them."""
        return {race.pair for race in self.races}

    def to_json(self) -> dict[str, Any]:
        """JSON values; ``verdict`` is ``"unknown"`` where a bound was hit before it was certain."""
        counts = ("states", "transitions", "revisits", "asleep", "all_states", "bound", "disputed")
        stuck = self.deadlock and {"ops": list(self.deadlock.ops), "words": self.deadlock.words}
        return {
            "id": self.id,
            "verdict": "unknown" if self.verdict is None else str(self.verdict),
            "races": [race_json(race) for race in self.races],
            "deadlock": stuck,
            **{name: getattr(self, name) for name in counts},
            "orders": None if self.orders is None else _countable(self.orders),
            "traces": None if self.traces is None else _countable(self.traces),
        }


def race_json(race: Overtaking) -> dict[str, Any]:
    """JSON values of a race: its ops and bytes, and ``witness``."""
    out = {
        "first": race.pair[0],
        "second": race.pair[1],
        "kind": str(race.kind),
        "buf": race.bytes.buf,
        "off": race.bytes.off,
        "len": race.bytes.len,
        "words": str(race),
        "witness": None,
    }
    if race.witness is not None:
        out["witness"] = {**vars(race.witness), "steps": list(race.witness.steps)}
    return out


def spelled(count: int) -> str:
    """A count for reading: exact while that is short.

    Example:
        >>> spelled(2104), spelled(10**40)
        ('2,104', '1.0e+40')
    """
    if count < 10**12:
        return f"{count:,}"
    exponent, rest = divmod(log10(count), 1)
    return f"{10**rest:.1f}e+{exponent:.0f}"


def _countable(count: int) -> int | str:
    return count if count.bit_length() < LONGEST / log10(2) else spelled(count)
