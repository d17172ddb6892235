"""The timings as a chapter shows them: text for a live run, Markdown with its provenance for the complete one."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from refimpl.lessons import results
from refimpl.lessons.bench_engine.added import origins
from refimpl.lessons.history_timing.bars import PAIRS
from refimpl.lessons.history_timing.cases import PARTS
from refimpl.lessons.history_timing.rows import FenceRow, PairRow
from refimpl.lessons.lines import wrapped
from refimpl.lessons.markdown import table

RESULT = "bench_fences"
COMMAND = f"python -m refimpl bench fences --save {RESULT}"
NAMED: dict[str, Callable[[FenceRow], str]] = {
    "weights": lambda row: row.model,
    "draft": lambda row: row.draft,
    "batch": lambda row: f"{row.batch}",
    "preset": lambda row: row.preset + (" (again)" if row.again else ""),
    "and": lambda row: added(row),
}
"""Columns that say what a row is of."""
FIGURES: dict[str, Callable[[FenceRow], str]] = {
    "host": lambda row: f"{row.host_ms:.3f}",
    "forward": lambda row: f"{row.forward_ms:.3f}",
    "step": lambda row: f"{row.step_ms:.3f}",
    "held before": lambda row: f"{row.before_us / 1000:.3f}",
    "held after": lambda row: f"{row.after_us / 1000:.3f}",
    "launch at": lambda row: f"{row.launch_ms:.3f}",
    "GPU idle": lambda row: f"{row.idle_share:.1%}",
}
"""Columns of figures: milliseconds, and a share."""
LEGEND = (
    "Milliseconds, medians. A step lies between the longest of host, forward and what was added on schedule, and all "
    "of them together, but for some percent: a part is timed alone, at another moment. Whether the GPU waited is what "
    "GPU idle says. Held: the host stands still, before the launch or after it. Launch at: from the top of the turn."
)


def text(rows: Sequence[FenceRow]) -> str:
    """Rows of one run for a terminal or a notebook; columns that say the same in every row are left out.

    Args:
        rows: at least one.
    """
    columns = _columns(rows)
    cells = [list(columns), *([of(row) for of in columns.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if head in FIGURES or head == "batch" else cell.ljust(width)
            for head, cell, width in zip(columns, line, widths, strict=True)
        ).rstrip()
        for line in cells
    ]
    first = rows[0]
    same = f"{first.model}, batch {first.batch}; n = {min(row.n for row in rows)} steps. {LEGEND}"
    return "\n".join([*lines, "", wrapped(same)])


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
    return "\n\n".join([body, LEGEND, *_provenance(part, folder)])


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
    words = ["CPU lengths"] if isinstance(row, FenceRow) and row.needs_cpu_seq_lens else []
    words += [f"{row.added_host_ms:g} ms of host work"] if row.added_host_ms else []
    words += [f"{row.added_schedule_ms:g} ms on schedule"] if row.added_schedule_ms else []
    words += [".item() on schedule"] if row.item else []
    return ", ".join(words) or "–"


def _columns(rows: Sequence[FenceRow]) -> dict[str, Callable[[FenceRow], str]]:
    """What tells the rows apart, and the figures."""
    named = {head: of for head, of in NAMED.items() if head == "preset" or len({of(row) for row in rows}) > 1}
    return {**named, **FIGURES}


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
