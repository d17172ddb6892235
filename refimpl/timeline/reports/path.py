"""What a critical path is made of: segments, their sums, and a host thread's time cut into segments."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline.intervals import Interval, Overlapping, rest, union
from refimpl.timeline.reading.places import HOST
from refimpl.timeline.reports.works import Launch, family, on_lane

BETWEEN_CALLS = "code between calls"


class Segment(NamedTuple):
    """A stretch of the critical path.

    Args:
        lane: where it lies.
        name: of the span, the call or the gap.
        kind: ``run``, ``blocked``, ``host``, ``launch``, or ``idle`` for a gap.
        from_us, to_us: when.
    """

    lane: str
    name: str
    kind: str
    from_us: float
    to_us: float


@dataclass(frozen=True)
class Part:
    """The segments of one family on one lane.

    Args:
        lane, name, kind: as those of the segments, the name without the number of its step.
        times: how many segments.
        us: their sum.
    """

    lane: str
    name: str
    kind: str
    times: int
    us: float


def parts(path: Iterable[Segment]) -> tuple[Part, ...]:
    """A path summed by lane, name and kind, longest first; the sum of all is the path's length."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for one in path:
        found.setdefault((one.lane, family(one.name), one.kind), []).append(one.to_us - one.from_us)
    summed = (Part(*key, len(us), sum(us)) for key, us in found.items())
    return tuple(sorted(summed, key=lambda part: (-part.us, part.lane, part.name, part.kind)))


class ByEnd:
    """Spans found by when they end.

    Args:
        spans: in order of (start, end).
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = sorted(spans, key=lambda s: s.end_us)
        self._ends = [s.end_us for s in self._spans]

    def last(self, until: float) -> Span | None:
        """The one that ends last, at ``until`` or before; of several, the last in the order given."""
        at = bisect_right(self._ends, until)
        return self._spans[at - 1] if at else None


class HostThread:
    """One lane of the host: its blocking calls, its work, and on ``"host"`` the calls that queued work.

    Args:
        trace: whose lane it is.
        lane: which.
        issued: the calls that queued work.
    """

    def __init__(self, trace: Trace, lane: str, issued: Sequence[Launch]) -> None:
        self.lane = lane
        held, work = on_lane(trace.spans, lane, SpanKind.BLOCKED), on_lane(trace.spans, lane, SpanKind.HOST)
        calls = [Span(lane, call.name, SpanKind.RUN, *call.interval) for call in issued] if lane == HOST else []
        self.held = ByEnd(held)
        self.all = ByEnd(sorted([*held, *work], key=lambda s: (s.start_us, s.end_us)))
        self._layers = [("blocked", Overlapping(held)), ("launch", Overlapping(calls)), ("host", Overlapping(work))]

    def between(self, window: Interval) -> list[Segment]:
        """What the thread did in a stretch, in order of time: blocked, else in a call, else at work, else in code
        between calls."""
        found: list[Segment] = []
        left = rest([], window)
        for kind, layer in self._layers:
            covered = _apart(layer.within(window), window)
            for name, part in covered:
                found += [Segment(self.lane, name, kind, *piece) for piece in _cut(part, left)]
            left = rest([(one.from_us, one.to_us) for one in found], window)
        found += [Segment(self.lane, BETWEEN_CALLS, "host", *part) for part in left]
        return sorted(found, key=lambda one: one.from_us)


def _apart(spans: Iterable[Span], window: Interval) -> list[tuple[str, Interval]]:
    """The parts of spans that none before them covers, within the window."""
    at, found = window[0], []
    for span in spans:
        start, end = max(span.start_us, at), min(span.end_us, window[1])
        if end > start:
            found.append((span.name, (start, end)))
            at = end
    return found


def _cut(part: Interval, rooms: Sequence[Interval]) -> list[Interval]:
    """The pieces of an interval that lie in rooms, which are in order and apart."""
    first = bisect_right(rooms, part[0], key=lambda room: room[1])
    found = []
    for room in rooms[first:]:
        if room[0] >= part[1]:
            break
        found += union([part], room)
    return found
