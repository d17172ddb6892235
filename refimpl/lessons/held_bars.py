"""A bar a step, and in it the host standing still: what the pictures of two chapters share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

INK, LIGHT, AFTER = "#1c2127", "#eef1f4", "#c3cad2"


def held_bars(
    names: Sequence[str],
    before_ms: Sequence[float],
    after_ms: Sequence[float],
    step_ms: Sequence[float],
    title: str,
    row_inches: float = 0.27,
) -> Any:
    """A figure of steps, in milliseconds: the first bar stands on top.

    Args:
        names: of the bars.
        before_ms, after_ms: the host standing still, before a launch and after it.
        step_ms: of which these are parts.
        title: above the figure.
        row_inches: of the figure's height, for each bar.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 1.3 + row_inches * len(names)), layout="constrained")
    at = range(len(names))
    axes.barh(at, step_ms, 0.78, color=LIGHT, edgecolor=AFTER, label="a step")
    axes.barh(at, before_ms, 0.5, color="white", edgecolor=INK, hatch="////", label="host held before the launch")
    axes.barh(at, after_ms, 0.5, left=before_ms, color=AFTER, edgecolor=INK, label="after it, for results")
    axes.set_yticks(list(at), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("ms")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    plt.close(figure)
    return figure
