"""Presets as a chapter shows them: what the history's table expects of them, and beside it what its own run found."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from refimpl import device as devices
from refimpl.commands.tables import text
from refimpl.fences import Expect, Preset, preset
from refimpl.lessons import results
from refimpl.lessons.bench_engine.origin import Origin
from refimpl.lessons.history import legend
from refimpl.lessons.history.hands import Hands
from refimpl.lessons.history.hazards import few, named
from refimpl.lessons.history.outcome import Outcome
from refimpl.lessons.history.presets import Plan, run_presets
from refimpl.lessons.history.timed import Cost
from refimpl.lessons.lines import wrapped
from refimpl.lessons.lossless.setups import TINY_MODELS
from refimpl.lessons.markdown import table
from refimpl.program.errors import UserError

RUNS = {"sim": 12, "cuda": 40}
"""By device: orders of an adversary, or runs with stalled streams. Most masked races show in every second one."""
MOST_WORKERS = 4
"""Processes of a chapter: each drives an engine of its own."""
PULL = "https://github.com/sgl-project/sglang/pull"
CAMPAIGNS = {"history_sim": "orders of the simulated device's adversary", "history_h200": "runs with stalled streams"}
"""Result files of all presets, by what a run of them is."""


def run_in_chapter(names: Sequence[str], device: str | None = None, runs: int | None = None) -> list[Outcome]:
    """Runs presets with tiny models, which are made on the spot, in processes of their own.

    Args:
        names: of presets.
        device: ``"sim"`` or ``"cuda"``; None: the best one.
        runs: of each preset; None: as many as a chapter has time for.

    Returns:
        What came of each, in the order of the names.

    Order:
        The host waits for the processes.
    """
    chosen = device or devices.best()
    plan = Plan(chosen, TINY_MODELS, runs or RUNS[chosen], min(MOST_WORKERS, os.cpu_count() or 1))
    with closing(run_presets([_preset(name) for name in names], plan, hands=_hands(plan.workers))) as outcomes:
        found = {one.preset.name: one for one in outcomes}
    return [found[name] for name in names]


def expected(names: Sequence[str]) -> str:
    """Rows of the history's table as Markdown: the fences of each preset, and what is expected of it.

    Below the table: why, a list entry a row; what hides a race; what building the engine corrected in a row.

    Args:
        names: of presets, in the order of the rows.
    """
    presets = [_preset(name) for name in names]
    rows = table(("preset", "barrier", "event", "expected"), map(_cells, presets))
    why = "\n".join(f"- `{one.name}` ({_whose(one)}): {_because(one)}." for one in presets)
    return "\n\n".join([rows, "Why it is expected:", why, *_masks(presets), *_corrections(presets)])


def found(outcomes: Sequence[Outcome]) -> str:
    """What came of presets, for the end of a cell: a row each with counts of runs, and one with the times of a step.

    Below: the checker's races, a line for each preset that has some; what the columns mean.

    Args:
        outcomes: of one device.
    """
    faults = any(ran.fault for one in outcomes for ran in one.ran)
    counts = text([_found(one, faults) for one in outcomes])
    times = text([_cost(one.preset, one.cost) for one in outcomes if one.cost is not None])
    means = wrapped(_legend(outcomes, faults, bool(times)))
    return "\n\n".join(filter(None, [counts, times, _races(outcomes), means]))


def committed(names: Sequence[str], folder: Path = results.FOLDER) -> str:
    """What the committed campaigns found of presets, as Markdown: a row each, a line below for each campaign.

    Args:
        names: of presets; those that no campaign has are left out.
        folder: of the results.

    Raises:
        UserError: a result that is damaged.
    """
    there = [name for name in CAMPAIGNS if results.file_of(name, folder).is_file()]
    campaigns = [results.load(name, folder) for name in there]
    if not campaigns:
        return "No campaign is committed in this version."
    rows_of = [{row["preset"]: row for row in campaign.data["rows"]} for campaign in campaigns]
    shown = [name for name in names if any(name in rows for rows in rows_of)]
    faults = [any(rows[name].get("faults") for name in shown if name in rows) for rows in rows_of]
    heads = [
        "preset",
        *(
            f"{what}, {campaign.device}"
            for campaign, some in zip(campaigns, faults, strict=True)
            for what in ("wrong", *["faults"] * some, "with dropped")
        ),
    ]
    lines = []
    for name in shown:
        cells = (_counted(rows.get(name), some) for rows, some in zip(rows_of, faults, strict=True))
        lines.append([f"`{name}`", *(cell for row in cells for cell in row)])
    means = legend.counts([_preset(name) for name in shown], "wrong", "with dropped", any(faults))
    return "\n\n".join([table(heads, lines, words=1), legend.told(means), *map(_made, campaigns)])


_HANDS: list[Hands] = []
"""The processes of a chapter, once it has some: what they imported and compiled serves its next cell, too."""


def _hands(workers: int) -> Hands:
    if not _HANDS or _HANDS[-1].closed:
        _HANDS.append(Hands(workers))
        atexit.register(_HANDS[-1].close)
    return _HANDS[-1]


def _counted(row: Mapping[str, Any] | None, faults: bool) -> tuple[str, ...]:
    """Runs with wrong text, those that ended in a fault, and those with any wrong token."""
    if row is None:
        return ("–",) * (3 if faults else 2)
    counts = (row["wrong_runs"], *([row.get("faults", 0)] if faults else []), row["unmasked_wrong_runs"])
    return tuple(f"{count:,} of {row['runs']:,}" for count in counts)


def _made(campaign: results.Result) -> str:
    what, where = CAMPAIGNS[campaign.name].capitalize(), Origin.of(vars(campaign)).words
    return f"*{what}. {where}: `{results.told(campaign.command)}`*"


def _preset(name: str) -> Preset:
    try:
        return preset(name)
    except KeyError as error:
        raise UserError(str(error.args[0])) from None


def _cells(one: Preset) -> tuple[str, ...]:
    return f"`{one.name}`, {one.worker}", one.barrier, one.event, str(one.expect)


def _because(one: Preset) -> str:
    return f"{one.why} (our inference)" if one.inference else one.why


def _whose(one: Preset) -> str:
    link = "" if one.pr is None else f"[{one.pr}]({PULL}/{one.pr})"
    return ", ".join(filter(None, [link, one.date, "experiment" if one.experiment else ""]))


def _masks(presets: Sequence[Preset]) -> Iterator[str]:
    for mask in dict.fromkeys(one.masked_by for one in presets if one.expect is Expect.RACY_MASKED):
        names = ", ".join(f"`{one.name}`" for one in presets if one.masked_by == mask)
        yield f"*Hidden in {names}:* {mask}."


def _corrections(presets: Sequence[Preset]) -> Iterator[str]:
    for one in presets:
        if one.corrected:
            yield f"*Corrected in `{one.name}` when the engine was built:* {one.corrected.rstrip('.')}."


def _found(one: Outcome, faults: bool) -> dict[str, object]:
    return {
        "preset": one.preset.name,
        "expected": str(one.preset.expect),
        "met": "yes" if one.agrees else "NO",
        "wrong": f"{len(one.wrong)} of {one.runs}",
        **({"faults": sum(bool(ran.fault) for ran in one.ran)} if faults else {}),
        "with dropped": f"{len(one.unmasked_wrong)} of {one.runs}",
        "accepts": f"{_number(one.accept_len)} ({_number(one.control_accept_len)})",
    }


def _cost(of: Preset, cost: Cost) -> dict[str, object]:
    held = {"held before": round(cost.before_us), "held after": round(cost.after_us)}
    return {"preset": of.name, **held, "step": round(cost.step_us)}


def _races(outcomes: Sequence[Outcome]) -> str:
    """A line for each preset that has some."""
    named_in = ((one.preset.name, named((race.kind, race.buffer) for race in one.races)) for one in outcomes)
    lines = [wrapped(f"  {name}: {few(names)}") for name, names in named_in if names]
    return "\n".join(["Races in a recorded run:", *lines]) if lines else "Races in a recorded run: none"


def _number(accept_len: float | None) -> str:
    return "–" if accept_len is None else f"{accept_len:.2f}"


def _legend(outcomes: Sequence[Outcome], faults: bool, timed: bool) -> str:
    device, models = outcomes[0].device, outcomes[0].models
    dash = any(None in (one.accept_len, one.control_accept_len) for one in outcomes)
    unkind = "orders of the simulated device's adversary" if device == "sim" else "runs with streams that stand still"
    return legend.told(
        [
            f"{models} models on {device}; {max(one.runs for one in outcomes)} {unkind}",
            *legend.counts([one.preset for one in outcomes], "wrong", "with dropped", faults),
            "Met: the runs found what is expected",
            "Accepts: tokens a verify (the control's)" + ("; –: every run ended in a fault" if dash else ""),
            *([legend.HELD, legend.STEP, legend.SHARED] if timed else []),
        ]
    )
