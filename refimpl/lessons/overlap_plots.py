"""The chapter's two figures of a measurement: step time against the bound, and where the host stands still."""

from collections.abc import Sequence
from typing import Any

from refimpl.lessons.measure_overlap import CONTROL, Row
from refimpl.view.plot import Picture

INK, HOST, FORWARD, SCHEDULE, HAZARD = "#1c2127", "#555555", "#0072B2", "#E69F00", "#D55E00"
LOOKS: dict[str, dict[str, Any]] = {
    CONTROL: {"color": HOST, "marker": "s", "linestyle": ":"},
    "synchronize": {"color": SCHEDULE, "marker": "D", "linestyle": "--"},
    "wait": {"color": FORWARD, "marker": "o", "linestyle": "-"},
    "none": {"color": HAZARD, "marker": "x", "linestyle": "none", "zorder": 4, "markeredgewidth": 1.8},
}


def step_time_picture(rows: Sequence[Row], device: str) -> Picture:
    """Step time over host work for each fence, between max and sum of the host's part and the graph's."""
    alt = (
        f"Step time over host work on {device}. The curve of wait lies on the lower bound, max of host and graph; "
        "those of synchronize and of the control, one step at a time, lie on the upper bound, host plus graph. Without "
        "a fence steps are as fast as under wait and start from stale lengths."
    )
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7.2, 4.0), layout="constrained")
    control = _of(rows, CONTROL)
    hosts = [row.host_ms for row in control]
    axes.fill_between(
        hosts, [r.lower_ms for r in control], [r.upper_ms for r in control], color="#0072B2", alpha=0.08, lw=0
    )
    axes.plot(hosts, [r.lower_ms for r in control], color=INK, lw=0.8)
    axes.plot(hosts, [r.upper_ms for r in control], color=INK, lw=0.8)
    near = control[-2] if len(control) > 1 else control[-1]
    axes.annotate("host + graph", (near.host_ms, near.upper_ms), (-8, 6), textcoords="offset points", ha="right")
    axes.annotate("max(host, graph)", (near.host_ms, near.lower_ms), (8, -14), textcoords="offset points")
    for name, look in LOOKS.items():
        mine = _of(rows, name)
        if mine:
            label = f"{name} (stale lengths)" if name == "none" else name
            axes.plot([r.host_ms for r in mine], [r.step_ms for r in mine], label=label, ms=5, lw=1.6, **look)
    axes.set(xlabel="host work per step, ms", ylabel="step, ms", ylim=(0, None))
    axes.set_title(f"A step under each fence, between its bounds: {device}", fontsize=10, loc="left")
    _tidy(axes)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    return _finished(figure, alt)


def blocked_picture(rows: Sequence[Row], device: str) -> Picture:
    """Host time blocked per step before and after the launch, for each fence at every amount of host work."""
    alt = (
        f"Host time blocked per step on {device}, for each amount of host work. Under synchronize it is before the "
        "launch, about as long as the graph. Under wait it is after the launch, and it shrinks as host work grows. "
        "The control blocks after the launch for the whole graph."
    )
    plt = _pyplot()
    names = [name for name in ("synchronize", "wait", CONTROL) if _of(rows, name)]
    figure, panels = plt.subplots(1, len(names), figsize=(7.2, 3.2), sharey=True, layout="constrained")
    for axes, name in zip(panels if len(names) > 1 else [panels], names, strict=True):
        mine = _of(rows, name)
        at = range(len(mine))
        before, after = [r.blocked_before_ms for r in mine], [r.blocked_after_ms for r in mine]
        axes.bar(at, before, 0.7, color="white", edgecolor=INK, hatch="////", label="before the launch")
        axes.bar(at, after, 0.7, bottom=before, color="#d5d9de", edgecolor=INK, label="after it, for results")
        axes.set_xticks(list(at), [f"{r.host_ms:g}" for r in mine], fontsize=8)
        axes.set_title(name, fontsize=10, loc="left")
        axes.set_xlabel("host work, ms")
        _tidy(axes)
    first = panels[0] if len(names) > 1 else panels
    first.set_ylabel("host blocked per step, ms")
    first.set_ylim(0, 1.35 * max(r.blocked_before_ms + r.blocked_after_ms for r in rows))
    first.legend(frameon=False, fontsize=8, loc="upper left")
    figure.suptitle(f"Blocking mostly moves: {device}", fontsize=10, x=0.01, ha="left")
    return _finished(figure, alt)


def _of(rows: Sequence[Row], name: str) -> list[Row]:
    return sorted((row for row in rows if row.variant == name), key=lambda row: row.host_ms)


def _tidy(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e3e6ea", lw=0.6)
    axes.set_axisbelow(True)


def _finished(figure: Any, alt: str) -> Picture:
    """A picture that a notebook shows once: pyplot lets go of it."""
    _pyplot().close(figure)
    return Picture(figure, alt)


def _pyplot() -> Any:
    import matplotlib.pyplot as plt

    return plt
