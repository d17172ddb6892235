"""What one ``.item()`` on the schedule stream does to the host, behind a coarse barrier and behind an event."""

from collections.abc import Sequence

from refimpl.lessons.held_bars import held_bars
from refimpl.lessons.history_timing.rows import FenceRow
from refimpl.view.plot import Picture


def items_picture(rows: Sequence[FenceRow], device: str) -> Picture:
    """A bar a row: a step, and in it the host standing still before the launch and after it.

    Args:
        rows: of one batch, with and without ``.item()``.
        device: in words, for the title.
    """
    before, after = ([getattr(row, name) / 1000 for row in rows] for name in ("before_us", "after_us"))
    names, steps = [_name(row) for row in rows], [row.step_ms for row in rows]
    figure = held_bars(names, before, after, steps, f"One .item() on schedule: {device}", row_inches=0.32)
    words = (
        f"{name}: {held:.2f} before the launch and {waited:.2f} after it, of {step:.2f}"
        for name, held, waited, step in zip(names, before, after, steps, strict=True)
    )
    return Picture(figure, f"Milliseconds that the host stands still in a step on {device}. {'; '.join(words)}.")


def _name(row: FenceRow) -> str:
    return f"{row.preset}, with .item()" if row.item else row.preset
