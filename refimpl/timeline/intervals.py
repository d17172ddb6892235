"""Unions and cuts of time intervals."""

from collections.abc import Iterable

Interval = tuple[float, float]


def union(intervals: Iterable[Interval], window: Interval) -> list[Interval]:
    """The parts of the window that at least one interval covers, in order and apart.

    Example:
        >>> union([(0, 4), (3, 5), (8, 20)], (1, 10))
        [(1, 5), (8, 10)]
    """
    low, high = window
    merged: list[Interval] = []
    for start, end in sorted((max(start, low), min(end, high)) for start, end in intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def rest(covered: Iterable[Interval], window: Interval) -> list[Interval]:
    """The parts of the window that no interval covers.

    Example:
        >>> rest([(2, 3), (5, 9)], (0, 6))
        [(0, 2), (3, 5)]
    """
    at, high = window
    left: list[Interval] = []
    for start, end in union(covered, window):
        if start > at:
            left.append((at, start))
        at = end
    return [*left, (at, high)] if high > at else left


def length(intervals: Iterable[Interval]) -> float:
    """Sum of the lengths."""
    return sum(end - start for start, end in intervals)
