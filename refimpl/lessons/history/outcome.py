"""``Outcome``: what came of a preset, and whether the history's table says the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from refimpl.fences import Expect, Preset
from refimpl.lessons.history.recorded import Found
from refimpl.lessons.history.runner import Ran
from refimpl.lessons.history.tasks import Do, Row
from refimpl.lessons.history.timed import Cost

CLEARLY_LOWER = 0.9
"""An accept length below this share of the control's is the work of a race: the same requests have the same drafts."""


@dataclass(frozen=True)
class Outcome:
    """What came of a preset.

    Args:
        preset: which.
        device, models: on and with what.
        ran: its runs, by seed.
        control: runs of its control with the first of these seeds.
        races: what the checker finds in a recorded run.
        cost: of a steady step; None where no run got that far.
    """

    preset: Preset
    device: str
    models: str
    ran: tuple[Ran, ...]
    control: tuple[Ran, ...]
    races: tuple[Found, ...]
    cost: Cost | None

    @property
    def runs(self) -> int:
        return len(self.ran)

    @property
    def wrong(self) -> tuple[Ran, ...]:
        """Runs with a wrong token or a wrong end, or that ended in a fault."""
        return tuple(one for one in self.ran if one.wrong or one.fault)

    @property
    def unmasked_wrong(self) -> tuple[Ran, ...]:
        """Runs in which some forward computed what it should not, though it may have been dropped."""
        return tuple(one for one in self.ran if one.unmasked)

    @property
    def accept_len(self) -> float | None:
        """Tokens that a decode step emits for a request, on average; None where every run ended in a fault."""
        return accept_len(self.ran)

    @property
    def control_accept_len(self) -> float | None:
        """The same of the control."""
        return accept_len(self.control)

    @property
    def agrees(self) -> bool:
        """Whether the runs and the checker say what the table expects."""
        match self.preset.expect:
            case Expect.RIGHT:
                return not (self.races or self.wrong or self.unmasked_wrong)
            case Expect.RACY_MASKED:
                return bool(self.races) and not self.wrong and bool(self.unmasked_wrong)
            case Expect.RACY_HARMFUL:
                return bool(self.races) and (bool(self.wrong or self.accepts_less))

    @property
    def accepts_less(self) -> tuple[Ran, ...]:
        """Runs with an accept length clearly below that of the control with the same requests."""
        control = {one.seed: accept_len([one]) for one in self.control}
        return tuple(one for one in self.ran if _is_lower(accept_len([one]), control.get(one.seed)))

    def to_json(self) -> Row:
        """A row for people's programs and for a result file."""
        cost = self.cost
        blocked = {"before_launch": cost and cost.before_us, "after_launch": cost and cost.after_us}
        return {
            "preset": self.preset.name,
            "pr": self.preset.pr,
            "date": self.preset.date,
            "worker": self.preset.worker,
            "expect": str(self.preset.expect),
            "agrees": self.agrees,
            "device": self.device,
            "models": self.models,
            "runs": self.runs,
            "wrong_runs": len(self.wrong),
            "accepts_less_runs": len(self.accepts_less),
            "faults": sum(bool(one.fault) for one in self.ran),
            "unmasked_wrong_runs": len(self.unmasked_wrong),
            "accept_len": self.accept_len,
            "control_accept_len": self.control_accept_len,
            "races": [vars(found) for found in self.races],
            "host_blocked_us": blocked,
            "step_us": cost and cost.step_us,
            "gpu_idle": cost and cost.gpu_idle,
            "masked_by": self.preset.masked_by,
            "first_wrong": _first(self.wrong),
            "first_unmasked": _first(self.unmasked_wrong),
        }


@dataclass
class Gathered:
    """The rows of a preset's tasks, as they come in."""

    rows: dict[Do, list[Row]] = field(default_factory=dict)

    def take(self, do: Do, row: Row) -> None:
        """One more."""
        self.rows.setdefault(do, []).append(row)

    def outcome(self, preset: Preset, device: str, models: str) -> Outcome:
        """All of them."""
        costs = [Cost(**row) for row in self.rows.get(Do.COST, [])]
        return Outcome(
            preset,
            device,
            models,
            _ran(self.rows.get(Do.RUNS, [])),
            _ran(self.rows.get(Do.CONTROL, [])),
            tuple(Found(**row) for row in self.rows.get(Do.RACES, [])),
            costs[0] if costs else None,
        )


def accept_len(ran: Iterable[Ran]) -> float | None:
    """Tokens that a decode step of a request emits, over all runs; None without such a step."""
    ran = list(ran)
    verifies = sum(one.verifies for one in ran)
    return sum(one.emitted for one in ran) / verifies if verifies else None


def _ran(rows: Iterable[Mapping[str, Any]]) -> tuple[Ran, ...]:
    made = (Ran.from_json(row) for row in rows)
    return tuple(sorted(made, key=lambda one: one.seed))


def _is_lower(own: float | None, other: float | None) -> bool:
    return own is not None and other is not None and own < CLEARLY_LOWER * other


def _first(ran: tuple[Ran, ...]) -> Row | None:
    """The first of them, with the order that gives it again."""
    if not ran:
        return None
    one = ran[0]
    return {"seed": one.seed, "schedule": one.schedule, "words": one.fault or (*one.wrong, *one.unmasked)[0]}
