"""What DFLASH's own fence costs: where the host stands still under it, and under the barrier that took its place."""

from collections.abc import Iterator, Sequence

from refimpl.lessons import results
from refimpl.lessons.history_timing.cases import CONTROL, DFLASH, SELF_FENCE, SELF_FENCE_WAIT, Case
from refimpl.lessons.history_timing.pictures import blocked_picture
from refimpl.lessons.history_timing.rows import FenceRow
from refimpl.lessons.history_timing.shown import RESULT, saved
from refimpl.view.plot import Picture

PART, LARGE = "self_fence", "8b"
BARRIER = "29556"
"""The barrier that DFLASH joined, as it stood then."""
LATEST = "latest"
CASES = tuple(Case(preset, DFLASH) for preset in (SELF_FENCE, SELF_FENCE_WAIT, BARRIER, LATEST, CONTROL))
"""What a chapter times by itself."""
ITEMS = tuple(Case(preset, DFLASH, item=item) for preset in (BARRIER, LATEST) for item in (False, True))
"""With and without one `.item()` on schedule, behind the coarse barrier and behind the event."""


def moved(rows: Sequence[FenceRow]) -> str:
    """In sentences, as Markdown, a list entry for each batch: how long the host stands still, and where.

    Args:
        rows: of one set of weights, with both of the presets that are compared.
    """
    own = [row for row in rows if row.preset == SELF_FENCE and not row.needs_cpu_seq_lens]
    return "\n".join(_compared(row, _beside(rows, row)) for row in own)


def complete_picture() -> Picture | None:
    """The committed run of the large weights as bars; None where it was not made."""
    rows = saved(PART, LARGE)
    if not rows:
        return None
    return blocked_picture(rows, f"{LARGE} on {results.load(RESULT).device}")


def complete_words() -> str:
    """The same as :func:`moved`; a sentence where it was not made."""
    return moved(saved(PART, LARGE)) or "The committed run has no such figures yet."


def _beside(rows: Sequence[FenceRow], own: FenceRow) -> FenceRow:
    return next(row for row in rows if row.preset == BARRIER and row.batch == own.batch and not row.needs_cpu_seq_lens)


def _compared(own: FenceRow, barrier: FenceRow) -> str:
    return f"- {own.model}, batch {own.batch}: {'; '.join(_held(own, barrier))}."


def _held(own: FenceRow, barrier: FenceRow) -> Iterator[str]:
    gap_us = 1000 * max(0.0, own.step_ms - own.host_ms)
    share = f", {own.before_us / gap_us:.0%} of all the time that it has to spare" if gap_us else ""
    yield f"under `{own.preset}` the host stands still for {own.before_us / 1000:.2f} ms before the launch{share}"
    before_ms, after_ms = barrier.before_us / 1000, barrier.after_us / 1000
    yield f"under `{barrier.preset}` for {before_ms:.3f} ms before it and {after_ms:.2f} ms after it, for results"
    yield f"a step takes {own.step_ms:.2f} and {barrier.step_ms:.2f} ms"
