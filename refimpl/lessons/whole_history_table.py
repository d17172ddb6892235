"""The table of the whole history, as Markdown: a row a preset with counts of runs, and below it what races where."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from refimpl.fences import Expect, Preset
from refimpl.lessons import markdown, results
from refimpl.lessons.history import legend
from refimpl.lessons.history.hazards import few
from refimpl.lessons.whole_history import (
    GPU,
    INFERRED,
    NOT_MEASURED,
    SIM,
    WHERE,
    Row,
    accepts,
    described,
    found,
    provenance,
    races,
    saved,
)
from refimpl.program.errors import UserError

WRONG, FAULTS, DROPPED = "wrong", "faults", "dropped too"
FIGURES = {WRONG: "wrong_runs", FAULTS: "faults", DROPPED: "unmasked_wrong_runs"}
"""Columns of counts, and what of a row they count."""


def table(presets: Sequence[Preset], folder: Path = results.FOLDER) -> str:
    """What is expected of each preset, and what the complete runs found: numbers of runs in columns of their own.

    Below the table: rows that are not as expected, or accept less; the races; what the columns mean, where the runs
    were made.

    Args:
        presets: in the order of the rows.
        folder: of the results.
    """
    runs = {name: {one.name: row for one in presets if (row := saved(name, folder).get(one.name))} for name in WHERE}
    columns = [(name, what) for name, rows in runs.items() if rows for what in _columns(rows.values())]
    head = ["preset", "expected", *(f"{WHERE[name]}, {what}" for name, what in columns), "accepts"]
    lines = []
    either = {one.name: runs[SIM].get(one.name) or runs[GPU].get(one.name) for one in presets}
    for one in presets:
        row = either[one.name]
        cells = [_count(runs[name].get(one.name), what, _asked(name, one, folder)) for name, what in columns]
        lines.append([described(one), _expected(one), *cells, NOT_MEASURED if row is None else accepts(row)])
    measured = {name: row for name, row in either.items() if row is not None}
    told = _legend(presets, any(what == FAULTS for _, what in columns))
    below = (_differing(runs), _lower(measured), _races(measured), told, *(provenance(name, folder) for name in WHERE))
    return "\n\n".join([markdown.table(head, lines, words=2), *filter(None, below)])


def _columns(rows: Collection[Row]) -> list[str]:
    faults = any(row["faults"] for row in rows)
    return [what for what in FIGURES if faults or what != FAULTS]


def _expected(one: Preset) -> str:
    return f"{one.expect}{INFERRED}" if one.inference else str(one.expect)


def _asked(name: str, one: Preset, folder: Path) -> int:
    """How many runs of a preset a complete run was to make; a row that was given up has fewer."""
    try:
        data = results.load(name, folder).data
    except UserError:
        return 0
    asked: int = data["runs"] if one.expect is Expect.RIGHT else data.get("racy_runs") or data["runs"]
    return asked


def _count(row: Row | None, what: str, asked: int) -> str:
    if row is None:
        return NOT_MEASURED
    count = f"{row[FIGURES[what]]}"
    words = count if row["runs"] == asked else f"{count} of {row['runs']}"
    return words if row["agrees"] else f"**{words}**"


def _differing(runs: dict[str, dict[str, Row]]) -> str:
    entries = [
        f"`{preset}` is {found(row)} on {WHERE[name]}"
        for name, rows in runs.items()
        for preset, row in rows.items()
        if not row["agrees"]
    ]
    return f"Not as expected (bold): {', '.join(entries)}." if entries else ""


def _lower(rows: Mapping[str, Row]) -> str:
    entries = [f"`{name}` in {row['accepts_less_runs']}" for name, row in rows.items() if row["accepts_less_runs"]]
    told = "Of the first runs, some accept clearly less than the control does with the same requests"
    return f"{told}: {', '.join(entries)}." if entries else ""


def _races(rows: Mapping[str, Row]) -> str:
    """A list: the races, and whose they are."""
    of: dict[str, list[str]] = {}
    for name, row in rows.items():
        of.setdefault(races(row), []).append(f"`{name}`")
    entries = [f"- {what}: {', '.join(of[what])}" for what in sorted(of, key=few(()).__eq__)]
    return "\n".join(["What the checker finds in a recorded run:", "", *entries]) if entries else ""


def _legend(presets: Sequence[Preset], faults: bool) -> str:
    return legend.told(
        [
            "(?): our inference, no text of upstream says so",
            "A dash: not measured",
            *legend.counts(presets, WRONG, DROPPED, faults),
            "A count is of as many runs as the lines below say, or as stand beside it",
            "Accepts: tokens that a decode step emits",
        ]
    )
