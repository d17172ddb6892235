"""Two pictures of the whole history: which moment was right, by date; and where the host stood still in a step."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from refimpl.fences import Expect, Preset
from refimpl.lessons.held_bars import held_bars
from refimpl.lessons.timelines.steps import label_of
from refimpl.lessons.whole_history import RACY, Row, found
from refimpl.lessons.whole_history_costs import Step
from refimpl.view.plot import Picture

INK = "#1c2127"
LOOKS: Mapping[str, tuple[str, str, str]] = {
    Expect.RIGHT: ("o", "#009E73", "right"),
    Expect.RACY_MASKED: ("D", "#E69F00", "racy, hidden by something"),
    Expect.RACY_HARMFUL: ("X", "#D55E00", "racy, and harmful"),
    RACY: ("s", "#999999", "racy, no harm seen"),
}
"""Marker, colour and word of each verdict: none of them alone."""
ROW_INCHES = 0.27


def dates_picture(presets: Sequence[Preset], rows: Mapping[str, Row]) -> Picture:
    """Each moment at its date with the verdict on it: what a run found, or hollow, what the table expects.

    Args:
        presets: by date.
        rows: of a complete run, by preset.
    """
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7.2, 1.2 + ROW_INCHES * len(presets)), layout="constrained")
    verdicts = [found(rows[one.name]) if one.name in rows else str(one.expect) for one in presets]
    dates = [datetime.date.fromisoformat(one.date) for one in presets]
    for kind, (marker, colour, word) in LOOKS.items():
        for measured in (True, False):
            at = [k for k, one in enumerate(presets) if verdicts[k] == kind and (one.name in rows) == measured]
            if at:
                axes.scatter(
                    [dates[k] for k in at],
                    at,
                    marker=marker,
                    s=70,
                    color=colour if measured else "none",
                    edgecolor=INK if measured else colour,
                    linewidth=0.7 if measured else 1.5,
                    label=word if measured else f"{word} (expected; not measured)",
                    zorder=3,
                )
    axes.set_yticks(range(len(presets)), [f"{label_of(one)}, {one.worker}" for one in presets], fontsize=8)
    axes.invert_yaxis()
    axes.grid(color="#e3e6ea", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="x", labelsize=8)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    plt.close(figure)
    words = "; ".join(f"{one.date}: {one.name} {kind}" for one, kind in zip(presets, verdicts, strict=True))
    return Picture(figure, f"The moments of the history by date, each with the verdict on it. {words}.")


def held_picture(presets: Sequence[Preset], steps: Mapping[str, Step], device: str) -> Picture | None:
    """A bar a moment: a steady step, and in it the host standing still before the launch and after it.

    Args:
        presets: by date; those without a step are left out.
        steps: by preset.
        device: in words, for the title.

    Returns:
        None where no preset has a step.
    """
    there = [one for one in presets if one.name in steps]
    if not there:
        return None
    mine = [steps[one.name] for one in there]
    figure = held_bars(
        [f"{label_of(one)}, {one.worker}" for one in there],
        [step.before_ms for step in mine],
        [step.after_ms for step in mine],
        [step.step_ms for step in mine],
        f"Where the host stands still in a step: {device}",
    )
    words = "; ".join(f"{one.name}: {step}" for one, step in zip(there, mine, strict=True))
    return Picture(figure, f"Milliseconds of a step on {device}, of which the host stands still. {words}.")


def _pyplot() -> Any:
    import matplotlib.pyplot as plt

    return plt
