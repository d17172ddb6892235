"""What a still picture shows of a lane whose spans are too many and too short to be seen: how full each column is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from refimpl.program import Span, SpanKind
from refimpl.timeline.intervals import Interval, union

COLUMN = 0.01
"""Inches of a column: two dots of a printer, or two pixels at the resolution that pictures are saved in."""
SEEN = 0.05
"""Inches from which a span is drawn as itself in a crowd."""
CROWD = 150
"""Spans shorter than that which a lane may hold before they are summed up."""


@dataclass(frozen=True)
class Crowd:
    """A lane's spans, as drawn.

    Args:
        bars: those that are drawn one by one.
        busy, held: of each column, the share of its time that the others take, by what they show; empty where all are
            drawn one by one.
    """

    bars: list[Span]
    busy: list[float]
    held: list[float]


def crowd(bars: Sequence[Span], window: Interval, us_per_inch: float) -> Crowd:
    """Which spans of a lane are drawn one by one, and what becomes of the rest.

    Args:
        bars: one lane's, in order of time.
        window: what the axis shows, in microseconds.
        us_per_inch: scale of the axis.
    """
    least = SEEN * us_per_inch
    short = [bar for bar in bars if bar.us < least]
    if len(short) <= CROWD:
        return Crowd(list(bars), [], [])
    count = ceil((window[1] - window[0]) / (COLUMN * us_per_inch))
    busy = shares(((s.start_us, s.end_us) for s in short if s.kind is not SpanKind.BLOCKED), window, count)
    held = shares(((s.start_us, s.end_us) for s in short if s.kind is SpanKind.BLOCKED), window, count)
    return Crowd([bar for bar in bars if bar.us >= least], busy, held)


def shares(intervals: Iterable[Interval], window: Interval, count: int) -> list[float]:
    """Of each of ``count`` equal columns of the window, the share that the intervals cover.

    Example:
        >>> shares([(0, 1), (3, 6)], (0, 8), 4)
        [0.5, 0.5, 1.0, 0.0]
    """
    low, width = window[0], (window[1] - window[0]) / count
    covered = [0.0] * count
    for start, end in union(intervals, window):
        first, last = min(int((start - low) / width), count - 1), min(int((end - low) / width), count - 1)
        if first == last:
            covered[first] += end - start
            continue
        covered[first] += low + (first + 1) * width - start
        covered[last] += end - (low + last * width)
        for column in range(first + 1, last):
            covered[column] = width
    return [min(1.0, max(0.0, us / width)) for us in covered]


def typical(values: Sequence[float]) -> tuple[float, float, float]:
    """The tenth part, the middle and the nine tenths of some durations.

    Example:
        >>> typical([5.0, 1.0, 2.0, 3.0, 4.0])
        (1.0, 3.0, 5.0)
    """
    ordered = sorted(values)
    last = len(ordered) - 1
    return ordered[round(0.1 * last)], ordered[round(0.5 * last)], ordered[round(0.9 * last)]
