"""Unions and cuts of time intervals, and the spans that overlap one."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate

from refimpl.program import Span

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
    return sum((end - start for start, end in intervals), 0.0)


class Overlapping:
    """Spans in order of time, found by interval without looking at all of them."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = sorted(spans, key=lambda span: span.start_us)
        self._starts = [span.start_us for span in self._spans]
        self._ends = list(accumulate((span.end_us for span in self._spans), max))

    def within(self, window: Interval) -> list[Span]:
        """The spans that share more than a point with the window, in order of their starts."""
        low, high = bisect_right(self._ends, window[0]), bisect_left(self._starts, window[1])
        return [s for s in self._spans[low:high] if min(s.end_us, window[1]) > max(s.start_us, window[0])]
