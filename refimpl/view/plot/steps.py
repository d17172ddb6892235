"""The steps of a loop below the lanes of a still picture: each one's duration, or of many what is typical."""

from collections.abc import Sequence
from itertools import pairwise

from refimpl.view.plot.canvas import SMALL, Canvas, text_inches
from refimpl.view.plot.dense import typical
from refimpl.view.plot.layout import PALE, fit

PLATE = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"}
"""What stands behind a text that a line passes."""
_LEAST = 0.5
"""Inches that a step needs for its duration."""
_TICK = 0.05
"""Inches between the starts of steps from which they can be told apart."""


def mark_steps(canvas: Canvas, starts: Sequence[float], y: float) -> None:
    """The durations of the steps that the window holds, as dimensions; of steps too short for that, their starts and
    what is typical of them.

    Args:
        canvas: whose window.
        starts: when each step begins, in microseconds, in order.
        y: in inches from the top.
    """
    steps = [
        (k, start, end) for k, (start, end) in enumerate(pairwise(starts)) if canvas.shows(start) and canvas.shows(end)
    ]
    if not steps:
        return
    middle = typical([end - start for _, start, end in steps])[1] / canvas.us_per_inch
    if middle < _LEAST and len(steps) > 1:
        _summed(canvas, steps, y, ticks=middle >= _TICK)
        return
    style = {"arrowstyle": "|-|,widthA=0.25,widthB=0.25", "color": PALE, "shrinkA": 0, "shrinkB": 0, "linewidth": 0.9}
    for step, start, end in steps:
        canvas.ax.annotate("", (start, y), (end, y), arrowprops=style)
        ms = f"{(end - start) / 1000:.2f}"
        room = (end - start) / canvas.us_per_inch - 0.2
        text = fit((f"step {step} · {ms} ms", f"{ms} ms", ms), room, text_inches)
        canvas.text((start + end) / 2, y, text, ha="center", bbox=PLATE)


def _summed(canvas: Canvas, steps: Sequence[tuple[int, float, float]], y: float, ticks: bool) -> None:
    first, last = steps[0][1], steps[-1][2]
    low, middle, high = (us / 1000 for us in typical([end - start for _, start, end in steps]))
    canvas.ax.plot((first, last), (y, y), color=PALE, linewidth=0.9)
    for us in [*(start for _, start, _ in steps), last] if ticks else [first, last]:
        canvas.ax.plot((us, us), (y - 0.03, y + 0.03), color=PALE, linewidth=0.9)
    text = f"{len(steps):,} steps · median {middle:.2f} ms (p10 {low:.2f}, p90 {high:.2f})"
    short = f"{len(steps):,} steps · median {middle:.2f} ms"
    room = (last - first) / canvas.us_per_inch - 0.1
    told = fit((text, short), room, lambda words: text_inches(words, SMALL))
    canvas.text((first + last) / 2, y, told, ha="center", bbox=PLATE)
