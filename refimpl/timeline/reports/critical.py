"""``critical_path``: the chain of work, calls and waits that ends last, back to the trace's beginning."""

from typing import NamedTuple

from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline.reading.places import HOST, is_host
from refimpl.timeline.reports.path import ByEnd, HostThread, Segment
from refimpl.timeline.reports.works import launches, works

SOON_US = 3.0
"""At most this long before it starts, work was launched by a call that had not yet returned."""
NEAR_US = 10.0
"""Work that starts so soon after another stream's end may have waited for it."""
_BEFORE_ALL, _AFTER_ALL = "before the first work", "after the last work"
_LATENCY, _QUEUED = "launch latency", "between queued work"


def critical_path(trace: Trace) -> tuple[Segment, ...]:
    """The segments from 0 to the trace's end, in order of time and without a gap.

    The walk goes back from the span that ends last. Work waited for whichever came last: what ran before it on its
    stream, the call that launched it, or work of another stream that ended right before it began. A call waited for
    the host, which waited in its last blocking call for the work that ended in there last.

    Example:
        >>> from refimpl.program import TraceSource
        >>> build = Span("host", "build 0", SpanKind.HOST, 0, 80)
        >>> verify = Span("forward", "verify 0", SpanKind.RUN, 90, 200, None, 82, 86, "cudaGraphLaunch")
        >>> for one in critical_path(Trace(("host", "forward"), (build, verify), TraceSource.MEASURED)):
        ...     print(one.lane, one.name, one.kind, one.to_us - one.from_us)
        host build 0 host 80
        host code between calls host 2
        host cudaGraphLaunch launch 4
        forward launch latency idle 4
        forward verify 0 run 110
    """
    return _Walk(trace).back()


class _Place(NamedTuple):
    """Where the walk stands: at the end of work, or on a lane of the host."""

    us: float
    work: Span | None = None
    lane: str = HOST


class _Walk:
    """Goes back from the end, one span at a time."""

    def __init__(self, trace: Trace) -> None:
        self._end_us = trace.end_us
        work = works(trace)
        issued = launches(work)
        self._calls = {launch.submit_us: launch.name for launch in issued}
        self._work = ByEnd(work)
        lanes: dict[str, list[Span]] = {}
        for span in work:
            lanes.setdefault(span.lane, []).append(span)
        self._lanes = {lane: ByEnd(spans) for lane, spans in lanes.items()}
        hosts = dict.fromkeys([HOST, *(lane for lane in trace.lanes if is_host(lane))])
        self._threads = {lane: HostThread(trace, lane, issued) for lane in hosts}
        self._path: list[Segment] = []

    def back(self) -> tuple[Segment, ...]:
        """The whole path, in order of time."""
        at = self._last()
        while at is not None:
            at = self._from_work(at.work, at.us) if at.work is not None else self._from_host(at.lane, at.us)
        return tuple(reversed(self._path))

    def _last(self) -> _Place | None:
        """The span that ends last; work before what the host did."""
        ends = (one.last(self._end_us) for one in (self._work, *(thread.all for thread in self._threads.values())))
        last = max((span for span in ends if span is not None), key=lambda s: s.end_us, default=None)
        if last is None:
            self._add(HOST, _AFTER_ALL, "idle", 0.0, self._end_us)
            return None
        self._add(last.lane, _AFTER_ALL, "idle", last.end_us, self._end_us)
        return _Place(last.end_us, last if last.kind is SpanKind.RUN else None, last.lane)

    def _from_work(self, work: Span, until: float) -> _Place | None:
        """The work, and what it waited for: of all that it may have waited for, what came last."""
        start = work.start_us
        self._add(work.lane, work.name, "run", start, until)
        before, other, call = self._lanes[work.lane].last(start), self._other(work), self._called(work)
        came = [span.end_us for span in (before, other) if span is not None]
        latest = max(came + ([call[1]] if call is not None else []), default=None)
        if latest is None:
            self._add(work.lane, _BEFORE_ALL, "idle", 0.0, start)
            return None
        if before is not None and before.end_us == latest:
            self._add(work.lane, _QUEUED, "idle", latest, start)
            return _Place(latest, before)
        if other is not None and other.end_us == latest:
            self._add(work.lane, f"wait for {other.lane}", "idle", latest, start)
            return _Place(latest, other)
        begun = call[0] if call is not None else latest
        self._add(work.lane, _LATENCY, "idle", latest, start)
        self._add(HOST, self._calls.get(work.submit_us or 0.0, ""), "launch", begun, latest)
        return _Place(begun)

    def _other(self, work: Span) -> Span | None:
        """Work of another stream right after whose end this one began."""
        last = self._work.last(work.start_us)
        near = last is not None and last.lane != work.lane and work.start_us - last.end_us <= NEAR_US
        return last if near else None

    def _called(self, work: Span) -> tuple[float, float] | None:
        """When its call began, and from when on the work could start, as far as the call is concerned.

        Where no call is known, the end of what the host did last stands for both.
        """
        start = work.start_us
        if work.submit_us is None or work.ready_us is None:
            last = self._threads[HOST].all.last(start)
            return None if last is None else (last.end_us, last.end_us)
        begun = min(work.submit_us, start)
        return begun, (work.ready_us if work.ready_us <= start else max(begun, start - SOON_US))

    def _from_host(self, lane: str, until: float) -> _Place | None:
        """What a thread did since its last blocking call, and what that waited for."""
        thread = self._threads[lane]
        held = thread.held.last(until)
        self._path += reversed(thread.between((held.end_us if held is not None else 0.0, until)))
        if held is None:
            return None
        waited = self._work.last(held.end_us)
        if waited is None or waited.end_us <= held.start_us:
            self._add(lane, held.name, "blocked", held.start_us, held.end_us)
            return _Place(held.start_us, None, lane)
        self._add(lane, held.name, "blocked", waited.end_us, held.end_us)
        return _Place(waited.end_us, waited)

    def _add(self, lane: str, name: str, kind: str, start: float, end: float) -> None:
        if end > start:
            self._path.append(Segment(lane, name, kind, start, end))
