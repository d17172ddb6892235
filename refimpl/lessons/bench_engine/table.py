"""The report for a terminal: a table a part, then each bar with what it came to."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from refimpl.lessons.bench_engine.added import parts_of

HIDDEN = ("histogram", "calls")
"""Columns too wide for a terminal; the JSON has them."""


def table(report: Mapping[str, Any]) -> str:
    """Every part's rows, the bars, and what is missing.

    Args:
        report: as `Run.measure` returns it.
    """
    return "\n".join(_lines(report))


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    for part, rows in parts_of(report).items():
        if not rows:
            continue
        yield part.replace("_", " ")
        yield from _columns(rows)
        yield ""
    for bar in report["bars"]:
        sign = "at most" if bar["at_most"] else "at least"
        verdict = "reached" if bar["reached"] else "NOT REACHED"
        yield f"{bar['what']}: {_cell(bar['measured'])}, {sign} {bar['bar']:g}: {verdict}"
    for words in report["left_out"]:
        yield f"left out, time was short: {words}"
    for words in report["failed"]:
        yield f"failed: {words}"


def _columns(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = [name for name in rows[0] if name not in HIDDEN]
    cells = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    words = [isinstance(rows[0][name], str) for name in names]
    for line in cells:
        padded = (
            cell.ljust(width) if word else cell.rjust(width)
            for cell, width, word in zip(line, widths, words, strict=True)
        )
        yield "  " + "  ".join(padded).rstrip()


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
