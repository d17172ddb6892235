"""``compare``: what goes wrong under an order, beside what the program means, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from refimpl.device import sim
from refimpl.play.played import Contents, Played, Step
from refimpl.play.player import play
from refimpl.program import Program, Range, turns_of


@dataclass(frozen=True)
class Difference:
    """Bytes that hold another value than they should.

    Args:
        op: Index of the op that reads them; None for what memory holds at the end.
        name, lane: What reads them, and where it runs; empty for the end.
        bytes: The first run of such bytes.
        right, got: What they should hold and what they hold, in words.
        made: The right op wrote them, from inputs that were wrong already.
    """

    op: int | None
    name: str
    lane: str
    bytes: Range
    right: str
    got: str
    made: bool

    def sentence(self, id_: str) -> str:
        """The difference in one sentence, under the schedule of this id."""
        got = f"{self.got}, made from other inputs" if self.made else self.got
        if self.op is None:
            return f"at the end {self.bytes} holds {self.right}; under {id_} it holds {got}"
        reader = f"op {self.op} {self.name!r} on {self.lane}"
        return f"{reader} reads {self.right} in {self.bytes}; under {id_} it reads {got}"


@dataclass(frozen=True)
class Outcome:
    """One order beside the right one.

    Args:
        right: The run in the order of issue, each op at once.
        got: The run under the schedule.
        differences: Wrong values: reads that find what another op wrote, then reads of what was made from those, then
            memory at the end.
    """

    right: Played
    got: Played
    differences: tuple[Difference, ...]

    @property
    def id(self) -> str:
        """The schedule's id, or words for the order of issue."""
        return self.got.id or "the order of issue"

    @property
    def named(self) -> tuple[Step, ...]:
        """The steps that the schedule's id names, after which each op runs as soon as it may; all of them where it
        names none."""
        return self.got.steps[: len(turns_of(self.got.id)) or None]

    @property
    def words(self) -> str:
        """The first difference in a sentence, or that there is none, which a race may come to as well."""
        if self.differences:
            return self.differences[0].sentence(self.id)
        return (
            f"under {self.id} every value is right: what came in another order, if anything did, is written again "
            "before anyone reads it, or is the same either way"
        )

    def to_json(self) -> dict[str, Any]:
        """JSON values: ``schedule``, ``steps`` and ``reads`` in words, ``differences``."""
        return {
            "schedule": self.got.id,
            "steps": [str(step) for step in self.got.steps],
            "reads": [str(seen) for seen in self.got.reads],
            "differences": [_difference_json(one, self.id) for one in self.differences],
        }


def compare(program: Program, schedule_id: str, pair: tuple[int, int] | None = None) -> Outcome:
    """What a program reads and leaves behind under a schedule, beside what it means to.

    Args:
        program: Any program without a deadlock.
        schedule_id: The id of an order, as the explorer or a run gives it.
        pair: The racing ops, whose reads are named first.

    Raises:
        UserError: The schedule belongs to another program.
    """
    return outcome(play(program), play(program, sim().Replay(schedule_id)), pair)


def outcome(right: Played, got: Played, pair: tuple[int, int] | None = None) -> Outcome:
    """Two runs of one program, compared.

    Args:
        right: The one in the order of issue.
        got: The other.
        pair: The racing ops, whose reads are named first.
    """
    found = [
        _difference(seen.op, seen.name, seen.lane, seen.contents, other.contents)
        for seen, other in zip(right.reads, got.reads, strict=True)
    ]
    found += [_difference(None, "", "", *both) for both in zip(right.final, got.final, strict=True)]
    differences = [one for one in found if one is not None]
    differences.sort(key=lambda one: (one.op is None, one.made, pair is not None and one.op not in pair))
    return Outcome(right, got, tuple(differences))


def _difference(op: int | None, name: str, lane: str, right: Contents, got: Contents) -> Difference | None:
    differs = right.values != got.values
    if not bool(differs.any()):
        return None
    pairs = list(zip(right.words(), got.words(), strict=True))
    wrong = differs.nonzero().flatten().tolist()
    direct = [at for at in wrong if pairs[at][0] != pairs[at][1]]
    bytes_, first = next(right.runs(direct or wrong, pairs))
    meant, found = pairs[first]
    return Difference(op, name, lane, bytes_, meant, found, made=not direct)


def _difference_json(one: Difference, id_: str) -> dict[str, Any]:
    return {
        "op": one.op,
        "name": one.name,
        "lane": one.lane,
        "buf": one.bytes.buf,
        "off": one.bytes.off,
        "len": one.bytes.len,
        "right": one.right,
        "got": one.got,
        "made": one.made,
        "words": one.sentence(id_),
    }
