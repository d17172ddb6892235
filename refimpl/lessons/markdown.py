"""Rows as a Markdown table: what the tables of chapters share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int | None = None) -> str:
    """A table whose first columns are words, to the left, and whose others are figures, to the right.

    Args:
        head: of the columns.
        rows: a cell a column.
        words: how many columns are words; None: all.

    Example:
        >>> print(table(["fence", "stale"], [["wait", "0"]], words=1))
        | fence | stale |
        | --- | ---: |
        | wait | 0 |
    """
    left = len(head) if words is None else words
    rule = ["---" if at < left else "---:" for at in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
