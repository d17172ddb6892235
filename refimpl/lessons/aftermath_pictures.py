"""What one ``.item()`` on the schedule stream does to the host, behind a coarse barrier and behind an event."""

from collections.abc import Sequence
from typing import Any

from refimpl.lessons.history_timing.rows import FenceRow
from refimpl.view.plot import Picture

INK, LIGHT, AFTER = "#1c2127", "#eef1f4", "#c3cad2"


def items_picture(rows: Sequence[FenceRow], device: str) -> Picture:
    """A bar a row: a step, and in it the host standing still before the launch and after it.

    Args:
        rows: of one batch, with and without ``.item()``.
        device: in words, for the title.
    """
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7.2, 1.3 + 0.32 * len(rows)), layout="constrained")
    at = range(len(rows))
    before, after = ([getattr(row, name) / 1000 for row in rows] for name in ("before_us", "after_us"))
    axes.barh(at, [row.step_ms for row in rows], 0.78, color=LIGHT, edgecolor=AFTER, label="a step")
    axes.barh(at, before, 0.5, color="white", edgecolor=INK, hatch="////", label="host held before the launch")
    axes.barh(at, after, 0.5, left=before, color=AFTER, edgecolor=INK, label="after it, for results")
    axes.set_yticks(list(at), [_name(row) for row in rows], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("ms a step")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.suptitle(f"One .item() on schedule: {device}", fontsize=10, x=0.01, ha="left")
    plt.close(figure)
    words = (
        f"{_name(row)}: {row.before_us / 1000:.2f} before the launch and {row.after_us / 1000:.2f} after it, of "
        f"{row.step_ms:.2f}"
        for row in rows
    )
    return Picture(figure, f"Milliseconds that the host stands still in a step on {device}. {'; '.join(words)}.")


def _name(row: FenceRow) -> str:
    return f"{row.preset}, with .item()" if row.item else row.preset


def _pyplot() -> Any:
    import matplotlib.pyplot as plt

    return plt
