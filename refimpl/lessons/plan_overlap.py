"""When the parts of an EAGLE step run: the loads of its graphs and the graphs, by events around each of them.

So a step tells by itself whether the plan stream loads the verify beside the draft, and for how long. Forward stands
still in front of each step until the host has queued all of it: what lies between two marks is the device's work then,
and no gap of a host that calls late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from refimpl import device as devices
from refimpl.commands.tables import text as table
from refimpl.engine.scheduler import Scheduler
from refimpl.lessons.bench_engine.drive import run_to_end
from refimpl.lessons.bench_engine.workload import Workload
from refimpl.lessons.history_timing.cases import EAGLE, EAGLE_LATEST, PLANS, Case
from refimpl.lessons.history_timing.engines import Engines, load, loop_of
from refimpl.lessons.history_timing.live import SHARES, WEIGHTS
from refimpl.lessons.history_timing.measure import SKIP, new_tokens
from refimpl.lessons.history_timing.plan import MODELS
from refimpl.lessons.lines import wrapped
from refimpl.lessons.plan_parts import FORWARD, LOAD, PLAN, TOKENS, Part, marked
from refimpl.view.plot import Picture

PRESETS = (EAGLE_LATEST, *PLANS)
"""Without a plan stream, with the same fence in two spellings, and with the early event."""
INK = "#1c2127"
COLORS = {FORWARD: "#0072B2", PLAN: "#009E73"}
HALF = 0.4


def placed(presets: Sequence[str] = PRESETS, device: str | None = None) -> list[Part]:
    """The parts of a steady step of EAGLE engines, with the weights that a chapter measures with.

    Args:
        presets: rows of the history.
        device: ``"cuda"`` or ``"sim"``; None: the best one.

    Order:
        The host blocks until the device is idle. Forward stands still in every step: the loop is not to be timed.
    """
    chosen = device or devices.best()
    share, amounts = SHARES[chosen], MODELS[chosen][WEIGHTS[chosen]]
    tokens = [new_tokens(share.steps, loop_of(Case(preset, EAGLE))) for preset in presets]
    engines = Engines(
        load(WEIGHTS[chosen], chosen, (EAGLE,)), (share.batch,), amounts.prompt_tokens + max(tokens, default=0)
    )
    try:
        return [
            part
            for preset, new in zip(presets, tokens, strict=True)
            for part in _of(engines, Case(preset, EAGLE), Workload(share.batch, amounts.prompt_tokens, new))
        ]
    finally:
        engines.close()


def beside_us(parts: Sequence[Part], preset: str) -> float:
    """How long a preset loads the verify while its draft runs."""
    return _beside_us(_named(parts, preset, f"{LOAD} verify"), [_named(parts, preset, "draft")])


def ends_us(parts: Sequence[Part], preset: str) -> float:
    """When the draft extend ends, the last part of a step."""
    return _named(parts, preset, "draft_extend").end_us


def text(parts: Sequence[Part]) -> str:
    """A column for each preset, in microseconds: its graphs, the loads behind the draft's own, and what of these lies
    beside."""
    columns = {preset: _figures(parts, preset) for preset in dict.fromkeys(part.preset for part in parts)}
    names = next(iter(columns.values()))
    rows = [{"µs": name, **{preset: figures[name] for preset, figures in columns.items()}} for name in names]
    return "\n".join([table(rows), "", "Medians of steady steps that the host had queued before they began."])


def bound(parts: Sequence[Part], preset: str = EAGLE_LATEST) -> str:
    """What a plan stream can hide at most, in a sentence: the loads of verify and draft extend, as they are without it.

    Args:
        parts: as :func:`placed` gives them.
        preset: without a plan stream.
    """
    loads = sum(_named(parts, preset, f"{LOAD} {name}").us for name in ("verify", "draft_extend"))
    whole = ends_us(parts, preset)
    return wrapped(
        f"Of the {whole:.0f} µs of a step on the forward stream the two loads take {loads:.0f}: with all of that "
        f"beside other work it takes {whole - loads:.0f}, {loads / whole:.1%} less."
    )


def picture(parts: Sequence[Part], device: str) -> Picture:
    """A step of each preset as it ran, forward above plan.

    Args:
        parts: as :func:`placed` gives them.
        device: in words, for the title.
    """
    import matplotlib.pyplot as plt

    presets = list(dict.fromkeys(part.preset for part in parts))
    figure, axes = plt.subplots(figsize=(7.2, 0.8 + 0.75 * len(presets)), layout="constrained")
    for part in parts:
        _draw(axes, part, presets.index(part.preset))
    axes.set_xlim(right=1.17 * max(part.end_us for part in parts))
    axes.set_yticks(range(len(presets)), presets, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("µs from the begin of the draft's load; forward above, plan below; hatched: loads")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"The parts of a step: {device}", fontsize=10, loc="left")
    _beside_short_bars(figure, axes)
    plt.close(figure)
    told = (
        f"{preset} loads the verify beside its draft for {beside_us(parts, preset):.0f} of them" for preset in presets
    )
    tokens = (one for one in parts if one.name == TOKENS)
    copied = (f"{one.preset} copies the drafted tokens behind the join for {one.us:.0f}" for one in tokens)
    return Picture(figure, f"The parts of an EAGLE step on {device}, in microseconds. {'; '.join([*told, *copied])}.")


def _draw(axes: Any, part: Part, row: int) -> None:
    """A bar; a graph's has its name in it."""
    loads = part.name.startswith(LOAD)
    lower = row if part.stream == PLAN else row - HALF
    axes.broken_barh(
        [(part.begin_us, part.us)],
        (lower, HALF - 0.06),
        facecolors="white" if loads else COLORS[part.stream],
        edgecolor=COLORS[part.stream],
        hatch="" if not loads else "xxxx" if part.name == TOKENS else "////",
    )
    if not loads:
        words = axes.text(part.begin_us, lower + 0.17, f" {part.name}", color="white", fontsize=7, va="center")
        words.set_gid(f"{part.end_us}")


def _beside_short_bars(figure: Any, axes: Any) -> None:
    """A name that is longer than its bar stands behind the bar."""
    figure.draw_without_rendering()
    for words in axes.texts:
        end_us = float(words.get_gid())
        place, _ = axes.transData.inverted().transform((words.get_window_extent().x1, 0))
        if place > end_us:
            words.set(x=end_us, color=INK)


def _of(engines: Engines, case: Case, work: Workload) -> list[Part]:
    scheduler = engines.scheduler(case)
    # The first stall of a process blocks the host.
    devices.sleep_stream(scheduler.device, 1.0)
    _run(engines, scheduler, case, work)
    with marked(scheduler) as marks:
        _run(engines, scheduler, case, work)
    # The last step runs for requests that have ended.
    steps = list(marks.steps())[SKIP:-1]
    return [
        Part(case.preset, name, stream, median(step[at][2] for step in steps), median(step[at][3] for step in steps))
        for at, (name, stream, _, _) in enumerate(steps[0])
    ]


def _run(engines: Engines, scheduler: Scheduler, case: Case, work: Workload) -> None:
    run_to_end(scheduler, engines.subject.requests(work), loop_of(case))
    devices.get(scheduler.device).synchronize()


def _named(parts: Iterable[Part], preset: str, name: str) -> Part:
    return next(part for part in parts if (part.preset, part.name) == (preset, name))


def _figures(parts: Sequence[Part], preset: str) -> dict[str, int]:
    """What stands in a preset's column, by what it is of."""
    draft, verify, load, extend = (
        _named(parts, preset, name) for name in ("draft", "verify", f"{LOAD} verify", f"{LOAD} draft_extend")
    )
    tokens = [one.us for one in parts if (one.preset, one.name) == (preset, TOKENS)]
    exact = {
        "draft": draft.us,
        "verify": verify.us,
        "load verify": load.us,
        "beside the draft": beside_us(parts, preset),
        "behind the join": sum(tokens),
        "load draft_extend": extend.us,
        "beside draft or verify": _beside_us(extend, [draft, verify]),
        "the step ends at": ends_us(parts, preset),
    }
    return {name: round(us) for name, us in exact.items()}


def _beside_us(one: Part, others: Iterable[Part]) -> float:
    return sum(max(0.0, min(one.end_us, other.end_us) - max(one.begin_us, other.begin_us)) for other in others)
