"""``report``: the accounts of a recorded run, as `python -m refimpl trace` prints them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline.intervals import Interval, length, rest, union
from refimpl.timeline.reading.places import HOST, is_host
from refimpl.timeline.reports.causes import GpuIdle, gpu_idle
from refimpl.timeline.reports.critical import critical_path
from refimpl.timeline.reports.overlap import Concurrency, Overlap, overlaps
from refimpl.timeline.reports.path import Part, parts
from refimpl.timeline.reports.works import Launch, family, intervals, launches, works


@dataclass(frozen=True)
class LaneTime:
    """How one lane spent the window; the three times are all of it.

    Args:
        lane: which.
        busy_us: a stream ran something; a thread of the host worked or was in a call that queued work.
        blocked_us: a call held the thread.
        idle_us: the rest.
        spans: how many the lane has.
    """

    lane: str
    busy_us: float
    blocked_us: float
    idle_us: float
    spans: int


@dataclass(frozen=True)
class BlockingCall:
    """Calls of one kind that held the host.

    Args:
        call: the runtime's own name, where it is known.
        name: what it waited for, without the number of its step.
        lane: the thread that it held.
        times, us, mean_us, max_us: how often, together, on average and at most.
    """

    call: str | None
    name: str
    lane: str
    times: int
    us: float
    mean_us: float
    max_us: float


@dataclass(frozen=True)
class LaunchLead:
    """How far the host was ahead: from the return of a launch call to the start of its work.

    Args:
        count: launch calls.
        p10_us, median_us, p90_us: of the lead; below 0 where work began before its call returned. None without calls.
        late: how often the GPU had run dry before the call returned.
    """

    count: int
    p10_us: float | None
    median_us: float | None
    p90_us: float | None
    late: int


@dataclass(frozen=True)
class Report:
    """The accounts of a trace.

    Args:
        source: what the trace was read from.
        device: what it ran on, in words.
        us: length of the window: the whole trace.
        spans: how many the trace has.
        lanes: how each lane spent it, top to bottom.
        blocking: what held the host, longest total first.
        gpu_idle: how long the GPU ran nothing, and why.
        launch_lead: how far the host was ahead.
        critical_path: the chain that ends last, longest part first; the parts are the whole window.
        overlap: pairs of streams that ran at the same time, longest first.
        concurrency: the window by how many streams ran.
    """

    source: str
    device: str
    us: float
    spans: int
    lanes: tuple[LaneTime, ...]
    blocking: tuple[BlockingCall, ...]
    gpu_idle: GpuIdle
    launch_lead: LaunchLead
    critical_path: tuple[Part, ...]
    overlap: tuple[Overlap, ...]
    concurrency: tuple[Concurrency, ...]

    @property
    def blocked_us(self) -> float:
        """Host time in calls that block, over all threads."""
        return sum(call.us for call in self.blocking)

    def to_json(self) -> dict[str, Any]:
        """JSON values: times with three decimals, shares with four."""
        fields = asdict(self)
        fields["gpu_idle"].pop("late")
        fields["critical_path"] = {"us": sum(part.us for part in self.critical_path), "parts": fields["critical_path"]}
        rounded: dict[str, Any] = _rounded(fields)
        return rounded


def report(trace: Trace, source: str = "") -> Report:
    """The accounts of a trace.

    Args:
        trace: scheduled, simulated or measured.
        source: what it was read from, as the report names it.

    Example:
        >>> from refimpl.program import TraceSource
        >>> verify = Span("forward", "verify 0", SpanKind.RUN, 10, 90, None, 0, 6, "cudaGraphLaunch")
        >>> held = Span("host", "synchronize(verify_done 0)", SpanKind.BLOCKED, 6, 93, call="cudaEventSynchronize")
        >>> found = report(Trace(("host", "forward"), (held, verify), TraceSource.MEASURED))
        >>> found.blocking[0].call, found.blocking[0].us, found.gpu_idle.us, found.launch_lead.median_us
        ('cudaEventSynchronize', 87, 13.0, 4.0)
    """
    work, window = works(trace), (0.0, trace.end_us)
    issued, idle = launches(work), gpu_idle(trace)
    streams = [lane for lane in trace.lanes if not is_host(lane)]
    pairs, counts = overlaps(streams, work, window)
    return Report(
        source,
        trace.device,
        trace.end_us,
        len(trace.spans),
        _lanes(trace, issued, window),
        _blocking(trace.spans),
        idle,
        _lead(issued, idle.late),
        parts(critical_path(trace)),
        tuple(pairs),
        tuple(counts),
    )


def _lanes(trace: Trace, issued: Sequence[Launch], window: Interval) -> tuple[LaneTime, ...]:
    by_lane: dict[str, list[Span]] = {lane: [] for lane in trace.lanes}
    for span in trace.spans:
        by_lane[span.lane].append(span)
    return tuple(_lane(lane, spans, issued if lane == HOST else (), window) for lane, spans in by_lane.items())


def _lane(lane: str, spans: list[Span], issued: Sequence[Launch], window: Interval) -> LaneTime:
    works = intervals([s for s in spans if s.kind in (SpanKind.RUN, SpanKind.HOST)])
    held = union(intervals([s for s in spans if s.kind is SpanKind.BLOCKED]), window)
    free = rest([*works, *(call.interval for call in issued), *held], window)
    blocked_us, idle_us = length(held), length(free)
    return LaneTime(lane, window[1] - window[0] - blocked_us - idle_us, blocked_us, idle_us, len(spans))


def _blocking(spans: Sequence[Span]) -> tuple[BlockingCall, ...]:
    found: dict[tuple[str | None, str, str], list[float]] = {}
    for span in spans:
        if span.kind is SpanKind.BLOCKED and span.us > 0:
            found.setdefault((span.call, family(span.name), span.lane), []).append(span.us)
    calls = (BlockingCall(*key, len(us), sum(us), sum(us) / len(us), max(us)) for key, us in found.items())
    return tuple(sorted(calls, key=lambda one: (-one.us, one.call or "", one.name, one.lane)))


def _lead(issued: Sequence[Launch], late: int) -> LaunchLead:
    leads = sorted(launch.first.start_us - launch.ready_us for launch in issued)
    p10, median, p90 = (_quantile(leads, part) for part in (0.1, 0.5, 0.9))
    return LaunchLead(len(leads), p10, median, p90, late)


def _quantile(ordered: Sequence[float], part: float) -> float | None:
    """Between the two nearest of the sorted values, by distance."""
    if not ordered:
        return None
    at = part * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def _rounded(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one, name) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return round(value, 4 if key == "share" else 3) + 0.0 if isinstance(value, float) else value
