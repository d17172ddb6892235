"""Two figures of the timings: where the host stands still, and what the event gains as schedule has more to do."""

from collections.abc import Iterable, Sequence
from typing import Any

from refimpl.lessons.history_timing.cases import COARSE, LATEST
from refimpl.lessons.history_timing.rows import FenceRow
from refimpl.view.plot import Picture

INK, FORWARD, SCHEDULE, AFTER = "#1c2127", "#0072B2", "#E69F00", "#d5d9de"
LOOKS: dict[str, dict[str, Any]] = {
    COARSE: {"color": SCHEDULE, "marker": "D", "linestyle": "--", "label": "coarse"},
    LATEST: {"color": FORWARD, "marker": "o", "linestyle": "-", "label": "read_done"},
}


def blocked_picture(rows: Sequence[FenceRow], device: str) -> Picture:
    """Host time standing still in a step before and after the launch, a bar a row.

    Args:
        rows: of one set of weights, in the order of the bars; CPU lengths are marked.
        device: in words, for the title.
    """
    plt = _pyplot()
    batches = list(dict.fromkeys(row.batch for row in rows))
    size = (7.2, 1.4 + 0.34 * max(len(_at(rows, batch)) for batch in batches))
    figure, panels = plt.subplots(1, len(batches), figsize=size, sharey=True, squeeze=False, layout="constrained")
    for axes, batch in zip(panels[0], batches, strict=True):
        mine = _at(rows, batch)
        at = range(len(mine))
        before, after = ([getattr(row, name) / 1000 for row in mine] for name in ("before_us", "after_us"))
        axes.barh(at, before, 0.7, color="white", edgecolor=INK, hatch="////", label="before the launch")
        axes.barh(at, after, 0.7, left=before, color=AFTER, edgecolor=INK, label="after it, for results")
        axes.set_yticks(list(at), [_name(row) for row in mine], fontsize=8)
        axes.set_title(f"batch {batch}", fontsize=9, loc="left")
        axes.set_xlabel("ms a step")
        _tidy(axes, "x")
    panels[0][0].invert_yaxis()
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(f"Where the host stands still: {device}", fontsize=10, x=0.01, ha="left")
    plt.close(figure)
    words = (
        f"{_name(row)} at batch {row.batch}: {row.before_us / 1000:.2f} before, {row.after_us / 1000:.2f} after"
        for row in rows
    )
    return Picture(figure, f"Milliseconds that the host stands still in a step on {device}. {'; '.join(words)}.")


def gain_picture(rows: Sequence[FenceRow], device: str) -> Picture:
    """Step time under the event and under the coarse barrier, over work added to the host and to schedule's stream.

    Args:
        rows: of one set of weights at one batch, without `.item()`.
        device: in words, for the title.
    """
    plt = _pyplot()
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.2), sharey=True, layout="constrained")
    told = []
    for axes, name, words in zip(
        panels, ("added_host_ms", "added_schedule_ms"), ("host work", "work on schedule's stream"), strict=True
    ):
        for preset, look in LOOKS.items():
            mine = _swept(rows, preset, name)
            axes.plot([getattr(row, name) for row in mine], [row.step_ms for row in mine], ms=5, lw=1.6, **look)
            if mine:
                last = mine[-1]
                told.append(f"with {getattr(last, name):g} ms of {words} {last.step_ms:.2f} under {look['label']}")
        axes.set_xlabel(f"added {words}, ms")
        _tidy(axes, "y")
    panels[0].set(ylabel="step, ms", ylim=(0, None))
    panels[0].legend(frameon=False, fontsize=9, loc="lower right")
    figure.suptitle(f"A step under the event and under the coarse barrier: {device}", fontsize=10, x=0.01, ha="left")
    plt.close(figure)
    return Picture(figure, f"Step time in milliseconds on {device}, over added work. {'; '.join(told)}.")


def _swept(rows: Iterable[FenceRow], preset: str, name: str) -> list[FenceRow]:
    """Rows of a preset with nothing added but, perhaps, what `name` says; by that amount."""
    other = {"added_host_ms": "added_schedule_ms", "added_schedule_ms": "added_host_ms"}[name]
    mine = (row for row in rows if row.preset == preset and not row.item and getattr(row, other) == 0)
    return sorted(mine, key=lambda row: float(getattr(row, name)))


def _at(rows: Iterable[FenceRow], batch: int) -> list[FenceRow]:
    return [row for row in rows if row.batch == batch]


def _name(row: FenceRow) -> str:
    return f"{row.preset}{', CPU lengths' if row.needs_cpu_seq_lens else ''}"


def _tidy(axes: Any, grid: str) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#e3e6ea", lw=0.6)
    axes.set_axisbelow(True)


def _pyplot() -> Any:
    import matplotlib.pyplot as plt

    return plt
