"""What a check finds: races, deadlocks and lints, each with the ops, the bytes and the edge that is missing."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from refimpl.program import Range, Verdict


class Hazard(StrEnum):
    """RAW: read too early. WAR: overwritten too early. WAW: two writes in either order. lifetime: a block's former and
    next owner."""

    RAW = "RAW"
    WAR = "WAR"
    WAW = "WAW"
    LIFETIME = "lifetime"


@dataclass(frozen=True)
class Touch:
    """One side of a race.

    Args:
        op: 0-based index of the op, or of the call for a streaming checker.
        name: what it was.
        lane: where it runs.
        site: file, line and function of the call, when known.
    """

    op: int
    name: str
    lane: str
    site: str | None = None

    def __str__(self) -> str:
        return f"op {self.op} {self.name} on {self.lane}" + (f" ({self.site})" if self.site else "")


@dataclass(frozen=True)
class MissingEdge:
    """The smallest edge that would order a racing pair.

    Args:
        after, before: op indices: the edge leads from the end of ``after`` to the start of ``before``.
        words: how to make it.
    """

    after: int
    before: int
    words: str


@dataclass(frozen=True)
class Race:
    """Two accesses to one byte, one of them a write, that nothing orders. One report stands for one pair of call sites.

    Args:
        kind: the hazard.
        bytes: the first run of bytes at stake.
        first, second: the two ops, in issue order.
        edge: the smallest edge that would order them.
        ancestor: the last op that is before both, or None.
        count: how many pairs from these two sites were seen.
    """

    kind: Hazard
    bytes: Range
    first: Touch
    second: Touch
    edge: MissingEdge
    ancestor: Touch | None = None
    count: int = 1

    def __str__(self) -> str:
        seen = f" ({self.count} times)" if self.count > 1 else ""
        after = f"; last common ancestor: {self.ancestor}" if self.ancestor else ""
        return (
            f"{self.kind} on {self.bytes}: {self.first} and {self.second} are unordered{seen}{after}. "
            f"To order them: {self.edge.words}"
        )


@dataclass(frozen=True)
class Deadlock:
    """Ops that can never run.

    Args:
        ops: indices of the ops at which lanes stand still for good.
        words: why.
    """

    ops: tuple[int, ...]
    words: str


@dataclass(frozen=True)
class Lint:
    """Something that is legal and seldom meant.

    Args:
        rule: ``"wait-unrecorded"`` or ``"record-drops-capture"``.
        op: index of the op.
        words: what it does.
    """

    rule: str
    op: int
    words: str


@dataclass(frozen=True)
class Report:
    """All that a check found in one program."""

    id: str
    races: tuple[Race, ...]
    deadlock: Deadlock | None
    lints: tuple[Lint, ...]
    disputed: bool = False

    @property
    def verdict(self) -> Verdict:
        """A deadlock outweighs a race: a program that stands still has no later order to judge."""
        if self.deadlock is not None:
            return Verdict.DEADLOCK
        return Verdict.RACE if self.races else Verdict.OK

    def to_json(self) -> dict[str, Any]:
        """JSON values: ``id``, ``verdict``, ``races``, ``deadlock``, ``lints``, ``disputed``."""
        return {
            "id": self.id,
            "verdict": str(self.verdict),
            "races": [_race_json(race) for race in self.races],
            "deadlock": None
            if self.deadlock is None
            else {"ops": list(self.deadlock.ops), "words": self.deadlock.words},
            "lints": [vars(lint) for lint in self.lints],
            "disputed": self.disputed,
        }


def _race_json(race: Race) -> dict[str, Any]:
    return {
        "kind": str(race.kind),
        "buf": race.bytes.buf,
        "off": race.bytes.off,
        "len": race.bytes.len,
        "first": race.first.op,
        "second": race.second.op,
        "edge": vars(race.edge),
        "ancestor": None if race.ancestor is None else race.ancestor.op,
        "count": race.count,
        "words": str(race),
    }
