"""The tables of the page on the engine, made of what was measured: a part that is missing leaves its rows out."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from refimpl.lessons import results
from refimpl.lessons.bench_engine.added import parts_of
from refimpl.lessons.bench_engine.drive import Loop
from refimpl.lessons.engine_shortfalls import TOGETHER, shortfalls
from refimpl.lessons.engine_sources import Source, sources
from refimpl.lessons.results import Result

Row = Mapping[str, Any]
BENCH, TRAINING, LOSSLESS = "bench_engine", "training", "lossless_sim"
MADE_BY = {
    BENCH: "python -m refimpl bench engine --save bench_engine",
    TRAINING: "python -m refimpl train run",
    LOSSLESS: "python -m refimpl lossless --device sim --seeds 200 --save lossless_sim",
}
"""What writes each of the files."""
DRAFTS = {"eagle": "EAGLE-3", "mtp": "multi-layer EAGLE", "dflash": "DFLASH"}
"""Drafts as the page calls them."""
_FIGURE = re.compile(r"[≤≥ ]*[\d,.]+( M|%)?( \([\d.]+\))?|–")


@dataclass(frozen=True)
class Table:
    """A table with the lines that say where it comes from.

    Args:
        heads: of the columns.
        rows: cells, as they are shown.
        sources: at least one.
        lead: a sentence before it; empty for none.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sources: tuple[Source, ...]
    lead: str = ""

    @property
    def numeric(self) -> frozenset[int]:
        """Columns that hold figures alone."""
        columns = enumerate(zip(*self.rows, strict=True))
        return frozenset(at for at, cells in columns if all(_FIGURE.fullmatch(cell) for cell in cells))


@dataclass(frozen=True)
class Missing:
    """In the place of a table whose figures are not there.

    Args:
        words: what would make them.
    """

    words: str


def table(name: str, folder: Path = results.FOLDER) -> Table | Missing:
    """A table of the page.

    Args:
        name: a key of :data:`TABLES`.
        folder: of the results.

    Raises:
        UserError: a result that is damaged.
        KeyError: another name.
    """
    file, make = TABLES[name]
    if not results.file_of(file, folder).is_file():
        return Missing(f"Not measured in this version: `{MADE_BY[file]}` writes the figures that belong here.")
    found = results.load(file, folder)
    made = make(found)
    if not made.rows and not made.lead:
        return Missing(f"The run of {found.date} has no such figures: it ended before it came to them.")
    return made


def _models(of: Result) -> Table:
    """Parameters: a row for each size, a column for each model; of models trained again, those of the last run."""
    found = {(row["size"], row["model"]): f"{row['parameters']:,}" for row in _rows(of, "models")}
    models = list(dict.fromkeys(model for _, model in found))
    sizes = dict.fromkeys(size for size, _ in found)
    rows = [(size, *(found.get((size, model), "–") for model in models)) for size in sizes]
    return _table(of, ("parameters", *(_called(model) for model in models)), rows)


def _acceptance(of: Result) -> Table:
    """Rows by draft and text, columns by temperature."""
    found = {(row["draft"], row["domain"], row["temperature"]): row for row in _rows(of, "acceptance")}
    heats = sorted({heat for _, _, heat in found})
    rows = []
    for draft, domain in dict.fromkeys((draft, domain) for draft, domain, _ in found):
        cells = [_accepted(found.get((draft, domain, heat))) for heat in heats]
        rows.append((_called(draft), domain, *cells))
    return _table(of, ("draft", "text", *(f"T = {heat:g}" for heat in heats)), rows, ("acceptance",))


def _accepted(row: Row | None) -> str:
    return "–" if row is None else f"{row['accept_len']:.2f} ({row['unique_8grams']:.2f})"


def _steps(of: Result) -> Table:
    rows = [
        (
            row["model"],
            _called(row["draft"]),
            str(row["batch"]),
            f"{row['step_ms']:.3f}",
            f"{row['forward_ms']:.3f}",
            f"{row['host_ms']:.3f}",
            f"{sum(row['calls'].values()):.0f}" if "calls" in row else "–",
            f"{row['reference_us']:.1f}" if "reference_us" in row else "–",
            f"{row['over_bound']:.3f}",
            f"{row['idle_share']:.1%}",
        )
        for row in _rows(of, "overlapped_steps")
    ]
    heads = ("size", "draft", "batch", "step", "forward", "host", "calls", "reference", "÷ longer", "idle")
    return _table(of, heads, rows, ("overlapped_steps",))


def _plain(of: Result) -> Table:
    rows = [
        (
            row["model"],
            str(row["batch"]),
            f"{row['bare_ms']:.3f}",
            f"{row['products_ms']:.3f}",
            f"{row['over_products']:.2f}",
        )
        for row in _rows(of, "plain_steps")
    ]
    heads = ("weights", "batch", "decode graph, ms", "matrix products alone", "ratio")
    return _table(of, heads, rows, ("plain_steps",))


def _peers(of: Result) -> Table:
    rows = [
        (
            row["model"],
            str(row["batch"]),
            row["loop"],
            f"{row['tokens_per_s']:,.0f}",
            f"{row['step_ms']:.2f}",
            f"{row['accept_len']:.2f}",
        )
        for part in TOGETHER
        for row in _rows(of, part)
    ]
    return _table(of, ("weights", "batch", "loop", "tokens/s", "step, ms", "tokens a step"), rows, TOGETHER)


def _serving(of: Result) -> Table:
    found = {(row["model"], row["added_host_ms"], row["loop"]): row for row in _rows(of, "serving")}
    rows = []
    for model, added in dict.fromkeys((model, added) for model, added, _ in found):
        overlap, normal = (found.get((model, added, str(loop))) for loop in (Loop.OVERLAP, Loop.NORMAL))
        if overlap is None or normal is None:
            continue
        rates = [f"{row['tokens_per_s']:,.0f}" for row in (overlap, normal)]
        ratio = f"{overlap['tokens_per_s'] / normal['tokens_per_s']:.2f}"
        rows.append((model, f"{added:g}", *rates, ratio, f"{overlap['over_lower']:.2f}"))
    heads = ("weights", "added, ms", "overlap, tokens/s", "normal", "ratio", "run ÷ bound")
    return _table(of, heads, rows, ("serving",))


def _shortfalls(of: Result) -> Table:
    rows = [
        (one.bar.what, f"{one.bar.measured:.3g}", f"{'≤' if one.bar.at_most else '≥'} {one.bar.bar:g}", one.why)
        for one in shortfalls(of.data)
    ]
    held: Sequence[Row] = of.data.get("bars", ())
    reached = sum(bool(bar["reached"]) for bar in held)
    lead = f"{reached} of {len(held)} figures reach the bar set for them." if held else ""
    heads = ("figure", "measured", "bar", "what the run says of it")
    return replace(_table(of, heads, rows, parts_of(of.data)), lead=lead)


def _not_measured(of: Result) -> Table:
    """What the run ended before, or failed at."""
    words = dict.fromkeys(of.data.get("left_out", ()), "the run's time was over")
    words |= {name: f"it failed: {error}" for name, error in map(_split, of.data.get("failed", ()))}
    lead = "" if words else "Every part of the plan was measured."
    return replace(_table(of, ("not measured", "why"), words.items(), parts_of(of.data)), lead=lead)


def _split(failed: str) -> tuple[str, str]:
    """The part, and what it said."""
    model, _, rest = failed.partition(": ")
    part, _, error = rest.partition(": ")
    return (f"{model}: {part}", error) if error else (model, rest)


def _lossless(of: Result) -> Table:
    """Sums over the variants, a row for each worker."""
    rows = []
    found = _rows(of, "rows")
    for worker in dict.fromkeys(row["worker"] for row in found):
        mine = [row for row in found if row["worker"] == worker]
        sums = [sum(row[field] for row in mine) for field in ("runs", "requests", "tokens", "near_ties", "wrong")]
        rows.append((worker, str(len(mine)), *(f"{total:,}" for total in sums)))
    return _table(of, ("worker", "variants", "runs", "requests", "tokens", "excused", "wrong"), rows)


def _called(draft: str) -> str:
    return DRAFTS.get(draft, draft)


def _rows(of: Result, part: str) -> Sequence[Row]:
    found: Sequence[Row] = of.data.get(part, ())
    return found


def _table(of: Result, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]], parts: Collection[str] = ()) -> Table:
    """A table of some parts of a benchmark; or of a result that is of one run."""
    return Table(heads, tuple(rows), sources(of, parts))


TABLES: dict[str, tuple[str, Callable[[Result], Table]]] = {
    "models": (TRAINING, _models),
    "lossless": (LOSSLESS, _lossless),
    "acceptance": (BENCH, _acceptance),
    "steps": (BENCH, _steps),
    "plain": (BENCH, _plain),
    "peers": (BENCH, _peers),
    "serving": (BENCH, _serving),
    "shortfalls": (BENCH, _shortfalls),
    "not measured": (BENCH, _not_measured),
}
"""By name: the file of its figures, and what makes it."""
