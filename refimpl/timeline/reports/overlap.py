"""``overlap`` and ``concurrency``: which streams ran at the same time, and how many."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from refimpl.program import Span
from refimpl.timeline.intervals import Interval, length, union


@dataclass(frozen=True)
class Overlap:
    """Two streams that ran at the same time.

    Args:
        lanes: which, top to bottom.
        us: for how long.
        share: of the time in which the less busy one ran.
    """

    lanes: tuple[str, str]
    us: float
    share: float


@dataclass(frozen=True)
class Concurrency:
    """How long exactly so many streams ran."""

    streams: int
    us: float


def overlaps(lanes: Sequence[str], work: Sequence[Span], window: Interval) -> tuple[list[Overlap], list[Concurrency]]:
    """The pairs of streams that ran at the same time, longest first; and the window by how many streams ran.

    Args:
        lanes: of streams, top to bottom.
        work: what ran on them.
        window: from, to in microseconds.

    Example:
        >>> from refimpl.program import SpanKind
        >>> a, b = Span("a", "x", SpanKind.RUN, 0, 10), Span("b", "y", SpanKind.RUN, 6, 8)
        >>> pairs, counts = overlaps(["a", "b"], [a, b], (0, 12))
        >>> pairs[0].lanes, pairs[0].us, pairs[0].share, [(c.streams, c.us) for c in counts]
        (('a', 'b'), 2.0, 1.0, [(0, 2.0), (1, 8.0), (2, 2.0)])
    """
    by_lane: dict[str, list[Interval]] = {lane: [] for lane in lanes}
    for span in work:
        by_lane[span.lane].append((span.start_us, span.end_us))
    busy = {lane: union(found, window) for lane, found in by_lane.items()}
    together: dict[tuple[str, str], float] = {}
    counts: dict[int, float] = {}
    for (at, to), running in _stretches(lanes, busy, window):
        counts[len(running)] = counts.get(len(running), 0.0) + to - at
        for n, lane in enumerate(running):
            for other in running[n + 1 :]:
                together[lane, other] = together.get((lane, other), 0.0) + to - at
    pairs = [Overlap(pair, us, us / min(length(busy[lane]) for lane in pair)) for pair, us in together.items()]
    order = {lane: n for n, lane in enumerate(lanes)}
    pairs.sort(key=lambda pair: (-pair.us, *(order[lane] for lane in pair.lanes)))
    most = max(counts, default=0)
    return pairs, [Concurrency(n, counts.get(n, 0.0)) for n in range(most + 1)]


def _stretches(
    lanes: Sequence[str], busy: dict[str, list[Interval]], window: Interval
) -> list[tuple[Interval, list[str]]]:
    """The window cut where a stream starts or ends, with the streams that run in each piece."""
    turns: dict[float, list[str]] = {window[0]: [], window[1]: []}
    for lane in lanes:
        for start, end in busy[lane]:
            turns.setdefault(start, []).append(lane)
            turns.setdefault(end, []).append(lane)
    running: set[str] = set()
    place = {lane: n for n, lane in enumerate(lanes)}
    found = []
    for at, to in pairwise(sorted(turns)):
        running.symmetric_difference_update(turns[at])
        found.append(((at, to), sorted(running, key=place.__getitem__)))
    return found
