"""The timings as a chapter shows them: text for a live run, Markdown with its provenance for the complete one."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from refimpl.lessons import results
from refimpl.lessons.bench_engine.added import origins
from refimpl.lessons.history_timing.bars import PAIRS
from refimpl.lessons.history_timing.cases import PARTS
from refimpl.lessons.history_timing.rows import FenceRow, PairRow
from refimpl.lessons.lines import WIDTH, wrapped
from refimpl.lessons.markdown import table

RESULT = "bench_fences"
COMMAND = f"python -m refimpl bench fences --save {RESULT}"
NOTHING = "–"
NAMED: dict[str, Callable[[FenceRow], str]] = {
    "weights": lambda row: row.model,
    "draft": lambda row: row.draft,
    "preset": lambda row: row.preset + ("*" if row.again else ""),
    "and": lambda row: _added(row, "host +{:g} ms", "schedule +{:g} ms", ".item()"),
}
"""Columns that say in words what a row is of."""
FIGURES: dict[str, Callable[[FenceRow], str]] = {
    "batch": lambda row: f"{row.batch}",
    "host": lambda row: f"{row.host_ms:.3f}",
    "forward": lambda row: f"{row.forward_ms:.3f}",
    "step": lambda row: f"{row.step_ms:.3f}",
    "before": lambda row: f"{row.before_us / 1000:.3f}",
    "after": lambda row: f"{row.after_us / 1000:.3f}",
    "at": lambda row: f"{row.launch_ms:.3f}",
    "idle": lambda row: f"{row.idle_share:.1%}",
}
"""Columns of figures: how many requests, milliseconds, and a share."""
APART = ("weights", "draft", "batch", "and")
"""What a table that is too wide says in a line above its rows, the first ones first."""
LEGEND = (
    "Milliseconds, medians. A step lies between the longest of host, forward and what was added on schedule, and all "
    "of them together, but for some percent: a part is timed alone, at another moment. Before, after: the host is "
    "held, it stands still before the launch or after it. At: the launch, from the top of the turn. Idle: the share "
    "of the step in which the forward stream has no work; it says whether the GPU waited."
)
ADDED = " And: what was added to each turn."
SECOND = " *: a second engine of the same preset."


def text(rows: Sequence[FenceRow]) -> str:
    """Rows of one run for a terminal or a notebook; columns that say the same in every row are left out.

    Where that is too wide for a page, what rows have in common stands in a line above them.

    Args:
        rows: at least one.
    """
    lines: list[str] = []
    for count in range(len(APART) + 1):
        lines = _lines(rows, APART[:count])
        if max(map(len, lines)) <= WIDTH:
            break
    same = [_place(rows[0], [head for head in ("weights", "batch") if head not in _columns(rows)])]
    steps = "; ".join([*filter(None, same), f"n = {min(row.n for row in rows)} steps"])
    return "\n".join([*lines, "", wrapped(f"{steps}. {_legend(rows)}")])


def complete(part: str, model: str | None = None, folder: Path = results.FOLDER) -> str:
    """A part of the committed run as a Markdown table, and a line below it that says where it comes from.

    Args:
        part: a key of `PARTS`.
        model: the weights; None: all.
        folder: of the results.

    Raises:
        KeyError: no such part.
        UserError: a result that is damaged.
    """
    rows = saved(part, model, folder)
    if not rows:
        return f"Not measured in this version: `{COMMAND}` writes the figures that belong here."
    columns = _columns(rows)
    cells = ([of(row) for of in columns.values()] for row in rows)
    body = table(list(columns), cells, words=sum(head not in FIGURES for head in columns))
    return "\n\n".join([body, _legend(rows), *_provenance(part, folder)])


def saved(part: str, model: str | None = None, folder: Path = results.FOLDER) -> list[FenceRow]:
    """Rows of the committed run; empty where it was not measured.

    Args:
        part, model, folder: as for :func:`complete`.
    """
    return [FenceRow(**row) for row in _saved(part, folder) if model in (None, row["model"])]


def saved_pairs(part: str, model: str | None = None, folder: Path = results.FOLDER) -> list[PairRow]:
    """Of the committed run, the cases that were set against each other.

    Args:
        part, model, folder: as for :func:`complete`.
    """
    return [PairRow(**row) for row in _saved(part, folder, PAIRS) if model in (None, row["model"])]


def added(row: FenceRow | PairRow) -> str:
    """What was added to a case, in words; a dash for nothing."""
    return _added(row, "{:g} ms of host work", "{:g} ms on schedule", ".item() on schedule")


def _added(row: FenceRow | PairRow, host: str, schedule: str, item: str) -> str:
    words = ["CPU lengths"] if isinstance(row, FenceRow) and row.needs_cpu_seq_lens else []
    words += [host.format(row.added_host_ms)] if row.added_host_ms else []
    words += [schedule.format(row.added_schedule_ms)] if row.added_schedule_ms else []
    words += [item] if row.item else []
    return ", ".join(words) or NOTHING


def _columns(rows: Sequence[FenceRow]) -> dict[str, Callable[[FenceRow], str]]:
    """What tells the rows apart, and the figures."""
    columns = {**NAMED, **FIGURES}
    return {head: of for head, of in columns.items() if head not in APART or len({of(row) for row in rows}) > 1}


def _lines(rows: Sequence[FenceRow], apart: Sequence[str]) -> list[str]:
    """The table; a line above the rows that have in common what stands apart."""
    columns = _columns(rows)
    heads, *cells = _padded(rows, {head: of for head, of in columns.items() if head not in apart})
    lines = [heads]
    above = [head for head in apart if head in columns]
    places = (_place(row, above) for row in rows)
    for place, same in groupby(zip(places, cells, strict=True), key=itemgetter(0)):
        lines += [*([place or "nothing added"] if above else []), *(line for _, line in same)]
    return lines


def _padded(rows: Sequence[FenceRow], columns: Mapping[str, Callable[[FenceRow], str]]) -> list[str]:
    """The heads and the rows, figures to the right."""
    cells = [list(columns), *([of(row) for of in columns.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    pads = [str.rjust if head in FIGURES else str.ljust for head in columns]
    lines = [zip(pads, line, widths, strict=True) for line in cells]
    return ["  ".join(pad(cell, width) for pad, cell, width in line).rstrip() for line in lines]


def _place(row: FenceRow, heads: Sequence[str]) -> str:
    """What a row has in these columns, for a line above it."""
    said = ((head, {**NAMED, **FIGURES}[head](row)) for head in heads)
    return ", ".join(f"batch {word}" if head == "batch" else word for head, word in said if word != NOTHING)


def _legend(rows: Sequence[FenceRow]) -> str:
    some_added = ADDED if "and" in _columns(rows) else ""
    return LEGEND + some_added + (SECOND if any(row.again for row in rows) else "")


def _saved(part: str, folder: Path, ending: str = "") -> Sequence[dict[str, Any]]:
    if part not in PARTS:
        raise KeyError(f"no part {part!r}: use one of {', '.join(PARTS)}")
    if not results.file_of(RESULT, folder).is_file():
        return ()
    found: Sequence[dict[str, Any]] = results.load(RESULT, folder).data.get(part + ending, ())
    return found


def _provenance(part: str, folder: Path) -> list[str]:
    """A line for each run that has figures in the part."""
    return [f"*{origin.words}: `{origin.command}`*" for origin in origins(results.load(RESULT, folder), part)]
