"""All of the fences' history in complete runs: what each row was found to be, and whether that was expected.

The runs are result files: orders of the simulated device's adversary, and runs with stalled streams on a GPU. A row
that a file lacks is told as not measured; so is a file that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from refimpl.commands.tables import text
from refimpl.fences import Expect, Preset, history, preset
from refimpl.lessons import results
from refimpl.lessons.history import legend
from refimpl.lessons.history.hazards import few, named
from refimpl.lessons.lines import wrapped

SIM, GPU = "history_sim", "history_h200"
RACY = "racy, no harm seen"
"""What is found where the checker sees a race and no run shows it."""
NOT_MEASURED = "–"
WHERE = {SIM: "sim", GPU: "GPU"}
"""Complete runs as a column is headed."""
DEVICES = {SIM: "sim", GPU: "cuda"}
INFERRED = " (?)"
"""Behind a verdict that is our inference."""
COMMANDS = {
    SIM: f"python -m refimpl history --device sim --runs 1000 --racy-runs 100 --save {SIM}",
    GPU: f"python -m refimpl history --device cuda --runs 200 --save {GPU}",
}
PULL = "https://github.com/sgl-project/sglang/pull"
MOST_NAMED = 8
"""Rows that a run lacks: more of them are counted and not named."""

Row = Mapping[str, Any]


def moments() -> tuple[Preset, ...]:
    """Rows of the history that upstream ran, or could be run with by a switch of its own; by date."""
    return tuple(one for one in history() if not one.experiment)


def experiments() -> tuple[Preset, ...]:
    """The rows beside them, which upstream never ran so by default; by date."""
    return tuple(one for one in history() if one.experiment)


def saved(name: str, folder: Path = results.FOLDER) -> dict[str, Row]:
    """The rows of a complete run by preset; empty where it was not made.

    Args:
        name: of the result, `SIM` or `GPU`.
        folder: of the results.

    Raises:
        UserError: a result that is damaged.
    """
    if not results.file_of(name, folder).is_file():
        return {}
    return {row["preset"]: row for row in results.load(name, folder).data["rows"]}


def either(folder: Path = results.FOLDER) -> dict[str, Row]:
    """By preset, the row of the simulated device's run, or of the GPU's where that lacks it."""
    return {**saved(GPU, folder), **saved(SIM, folder)}


def found(row: Row) -> str:
    """What a run found a row to be, in the words of the table; `RACY` where neither tokens nor acceptance tell."""
    if row["wrong_runs"] or row["accepts_less_runs"]:
        return Expect.RACY_HARMFUL
    if not row["races"]:
        return Expect.RACY_HARMFUL if row["unmasked_wrong_runs"] else Expect.RIGHT
    return Expect.RACY_MASKED if row["unmasked_wrong_runs"] else RACY


def provenance(name: str, folder: Path = results.FOLDER) -> str:
    """Where a complete run was made, in a line; or that it was not."""
    if not saved(name, folder):
        return f"*Not measured in this version: `{COMMANDS[name]}` writes the figures that belong here.*"
    result = results.load(name, folder)
    missing = [one.name for one in history() if one.name not in saved(name, folder)]
    names = f": {', '.join(missing)}" if len(missing) <= MOST_NAMED else ""
    lacks = f" It lacks {len(missing)} of {len(history())} rows{names}." if missing else ""
    driver = f"driver {result.driver}, " if result.driver else ""
    where = f"{result.device[0].upper()}{result.device[1:]} ({driver}torch {result.torch}), {result.date}"
    racy = result.data.get("racy_runs")
    fewer = f", {racy} where a race is expected" if racy else ""
    runs = f"{result.data['runs']} runs a row{fewer}, with {result.data['models']} weights"
    return f"*{where}; {runs}: `{results.told(result.command)}`.{lacks}*"


def differing(folder: Path = results.FOLDER) -> dict[str, tuple[str, ...]]:
    """By complete run, the rows that are not as the table expects; a run that was not made has none.

    A race that is expected and that no run showed differs, too.
    """
    return {
        name: tuple(preset for preset, row in saved(name, folder).items() if not row["agrees"]) for name in (SIM, GPU)
    }


def refuted(folder: Path = results.FOLDER) -> dict[str, tuple[str, ...]]:
    """By complete run, the rows that it shows to be worse than the table has them."""
    return {name: tuple(preset for preset, row in saved(name, folder).items() if _is_worse(row)) for name in (SIM, GPU)}


def tally(presets: Sequence[Preset]) -> str:
    """How many rows are expected to be right, masked and harmful, in a sentence."""
    counts = {kind: sum(one.expect is kind for one in presets) for kind in Expect}
    return f"Of {len(presets)}: " + ", ".join(f"{number} {kind}" for kind, number in counts.items()) + "."


def quiet(folder: Path = results.FOLDER) -> list[dict[str, object]]:
    """Rows for a terminal: those in which the checker sees a race and no run of the complete ones a wrong token.

    Args:
        folder: of the results.
    """
    return [
        {
            "preset": name,
            "on": row["device"],
            "wrong text": f"{row['wrong_runs']} of {row['runs']}",
            "accepts": accepts(row) + (f", lower in {row['accepts_less_runs']}" if row["accepts_less_runs"] else ""),
            "dropped tokens too": f"{row['unmasked_wrong_runs']} of {row['runs']}",
            "races": races(row),
        }
        for name, row in ((one.name, either(folder).get(one.name)) for one in history())
        if row is not None and row["races"] and not row["wrong_runs"]
    ]


def quiet_text(names: Sequence[str] | None = None, folder: Path = results.FOLDER) -> str:
    """The same as text: the rows, whose the races are, what the columns mean, and where each complete run was made that
    has one of the rows.

    Args:
        names: of presets; None: all.
        folder: of the results.
    """
    rows = [row for row in quiet(folder) if names is None or row["preset"] in names]
    if not rows:
        return "Not measured in this version."
    presets = [preset(str(row["preset"])) for row in rows]
    means = ["On: the device of the complete run", *legend.counts(presets, "wrong text", "dropped tokens too", False)]
    of = [name for name in (SIM, GPU) if any(row["on"] == DEVICES[name] for row in rows)]
    below = [legend.told(means), *(provenance(name, folder).strip("*").replace("`", "") for name in of)]
    counts = [{head: cell for head, cell in row.items() if head != "races"} for row in rows]
    return "\n\n".join([text(counts), _whose(rows), *map(wrapped, below)])


def corrections() -> str:
    """What building the engine corrected in the table, a list entry a row, as Markdown."""
    rows = [f"- `{one.name}`: {one.corrected.rstrip('.')}." for one in history() if one.corrected]
    return "\n".join(rows) or "Nothing was corrected."


def described(one: Preset) -> str:
    """A preset with its draft, its date, and a link to its pull request, as Markdown for a cell of a table."""
    link = f"`{one.name}`" if one.pr is None else f"[`{one.name}`]({PULL}/{one.pr})"
    # A narrow column is not to break the date.
    date = one.date.replace("-", "\N{NON-BREAKING HYPHEN}")
    return f"{link}, {one.worker}, {date}"


def accepts(row: Row) -> str:
    """Tokens that a decode step of a row emits for a request."""
    return NOT_MEASURED if row["accept_len"] is None else f"{row['accept_len']:.2f}"


def races(row: Row) -> str:
    """What the checker found in a row, in few words."""
    return few(named((race["kind"], race["buffer"]) for race in row["races"]))


def _whose(rows: Sequence[Row]) -> str:
    """The races of rows, a line each, and the presets that have them."""
    of: dict[str, list[str]] = {}
    for row in rows:
        of.setdefault(row["races"], []).append(row["preset"])
    lines = [wrapped(f"  {what}: {', '.join(names)}") for what, names in of.items()]
    return "\n".join(["Races in a recorded run:", *lines])


def _is_worse(row: Row) -> bool:
    match row["expect"]:
        case Expect.RIGHT:
            return found(row) != Expect.RIGHT
        case Expect.RACY_MASKED:
            return found(row) == Expect.RACY_HARMFUL
        case _:
            return False
