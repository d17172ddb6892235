"""Rows as a table for a terminal: what the commands share."""

from collections.abc import Mapping, Sequence


def text(rows: Sequence[Mapping[str, object]]) -> str:
    """Columns are the first row's keys; a column of numbers stands to the right.

    Example:
        >>> print(text([{"fence": "wait", "stale": 0}, {"fence": "none", "stale": 15}]))
        fence  stale
        wait       0
        none      15
    """
    head = list(rows[0]) if rows else []
    cells = [[_cell(row[key]) for key in head] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    right = [all(isinstance(row[key], int | float) for row in rows) for key in head]
    pads = [str.rjust if to_right else str.ljust for to_right in right]
    lines = [zip(pads, line, widths, strict=True) for line in (head, *cells)]
    return "\n".join("  ".join(pad(word, width) for pad, word, width in line).rstrip() for line in lines)


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
