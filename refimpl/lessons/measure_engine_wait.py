"""What it is worth in the engine to let a stream wait where the host stood still: for EAGLE, and for DFLASH."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from refimpl.lessons import results
from refimpl.lessons.history_timing.cases import CONTROL, DFLASH, EAGLE, Case
from refimpl.lessons.history_timing.pictures import blocked_picture
from refimpl.lessons.history_timing.rows import FenceRow
from refimpl.lessons.history_timing.shown import RESULT, added, saved
from refimpl.view.plot import Picture

PART, LARGE = "wait_or_synchronize", "8b"
SYNCHRONIZE, WAIT = "synchronize", "wait"
CASES = tuple(
    Case(preset, draft)
    for draft in (EAGLE, DFLASH)
    for preset in (f"{draft}-{SYNCHRONIZE}", f"{draft}-{WAIT}", CONTROL)
)
"""What the chapter times by itself: either fence for either draft, beside the control."""


@dataclass(frozen=True)
class Compared:
    """Either fence for one draft at one batch, and the control, which reads each step before it prepares the next."""

    synchronize: FenceRow
    wait: FenceRow
    control: FenceRow

    @property
    def given_away(self) -> float | None:
        """Of what the overlap gains over the control, the share that ``synchronize`` loses; None where it gains
        nothing."""
        gained_ms = self.control.step_ms - self.wait.step_ms
        return (self.synchronize.step_ms - self.wait.step_ms) / gained_ms if gained_ms > 0 else None

    def __str__(self) -> str:
        one, more = self.wait, "" if added(self.wait) == "–" else f", with {added(self.wait)}"
        share = self.given_away
        lost = "" if share is None else f" Of what the overlap gains, `synchronize` loses {share:.0%}."
        return (
            f"{one.draft} ({one.model}, batch {one.batch}{more}): a step takes {self.synchronize.step_ms:.3f} ms under "
            f"`synchronize`, {one.step_ms:.3f} ms under `wait`, {self.control.step_ms:.3f} ms one at a time.{lost}"
        )


def compared(rows: Sequence[FenceRow]) -> Iterator[Compared]:
    """The rows by draft, batch and what was added; those that lack a fence or the control are left out."""
    by = {(_place(row), row.preset): row for row in rows}
    for place in dict.fromkeys(_place(row) for row in rows):
        draft = place[1]
        found = [by.get((place, name)) for name in (f"{draft}-{SYNCHRONIZE}", f"{draft}-{WAIT}", CONTROL)]
        if None not in found:
            yield Compared(*found)  # type: ignore[arg-type]


def worth(rows: Sequence[FenceRow]) -> str:
    """In sentences, as Markdown, a list entry for each draft, batch and amount of added work.

    Args:
        rows: of one device.
    """
    return "\n".join(f"- {one}" for one in compared(rows))


def complete_worth() -> str:
    """The same of the committed run of the large weights; a sentence where it was not made."""
    return worth(saved(PART, LARGE)) or "Not measured in this version: the committed run has no such figures yet."


def complete_picture() -> Picture | None:
    """Of that run, where the host stands still with nothing added; None where it was not made."""
    rows = [row for row in saved(PART, LARGE) if added(row) == "–" and row.preset != CONTROL]
    return blocked_picture(rows, f"{LARGE} on {results.load(RESULT).device}") if rows else None


def _place(row: FenceRow) -> tuple[str, str, int, str]:
    return row.model, row.draft, row.batch, added(row)
