"""``gpu_idle``: how long no stream of a GPU ran anything, by what it waited for."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline.intervals import Interval, Overlapping, length, rest, union
from refimpl.timeline.reading.places import HOST, gpu_name, is_host
from refimpl.timeline.reports.drains import Drains
from refimpl.timeline.reports.works import Launch, family, intervals, launches, works

LONG_US = 20.0
"""Longer than a GPU takes to start work that is queued: then the work waited for something."""
DRAINED = "drained: nothing more came"
IN_CALL = "in the launch call"
QUEUED = "between queued work"
LATENCY = "launch latency"
UNSEEN = "waiting for something the trace does not show"
_OTHER = "issuing other work"


@dataclass(frozen=True)
class Cause:
    """Idle time of one kind.

    Args:
        cause: what the GPU waited for, in words.
        times: gaps that it caused, or a part of which.
        us: their sum.
    """

    cause: str
    times: int
    us: float


@dataclass(frozen=True)
class GpuIdle:
    """Time in which no stream of a GPU ran anything.

    Args:
        us: the sum over the GPUs.
        share: of the window, averaged over the GPUs.
        gpus: how many GPUs the trace shows; one if it shows none.
        by_cause: what it waited for, longest first; together they are ``us``.
        late: launch calls that returned when the GPU had already run dry.
    """

    us: float
    share: float
    gpus: int
    by_cause: tuple[Cause, ...]
    late: int


def gpu_idle(trace: Trace) -> GpuIdle:
    """The idle time of a trace's GPUs by cause.

    A gap ends with the work that runs next. It is cut by that work's call: until the call began, the host was late;
    then the host was in the call; then the work was queued and did not start. What a late host did is the blocking
    call or the annotation that covers most of that part, unless it was late because of a blocking call before: one that
    returned to an empty GPU, and without whose time the launch would have come before it was empty.

    Example:
        >>> from refimpl.program import TraceSource
        >>> build = Span("host", "build 0", SpanKind.HOST, 0, 80)
        >>> verify = Span("forward", "verify 0", SpanKind.RUN, 90, 200, None, 82, 86)
        >>> idle = gpu_idle(Trace(("host", "forward"), (build, verify), TraceSource.MEASURED))
        >>> for cause in idle.by_cause:
        ...     print(cause.cause, cause.us)
        the host was late: build 82.0
        in the launch call 4.0
        launch latency 4.0
    """
    work, window = works(trace), (0.0, trace.end_us)
    gpus: dict[str, list[Span]] = {gpu_name(lane): [] for lane in trace.lanes if not is_host(lane)} or {"": []}
    for span in work:
        gpus.setdefault(gpu_name(span.lane), []).append(span)
    judge = _Judge(trace, work, launches(work))
    found: dict[str, list[float]] = {}
    us, late = 0.0, set()
    for busy in gpus.values():
        for gap in rest(intervals(busy), window):
            at = bisect_left(busy, gap[1], key=lambda s: s.start_us)
            then = busy[at] if at < len(busy) else None
            us += gap[1] - gap[0]
            if then is not None and then.ready_us is not None and then.ready_us > gap[0]:
                late.add(then.submit_us)
            pieces: dict[str, float] = {}
            for part, cause in judge.pieces(gap, then):
                pieces[cause] = pieces.get(cause, 0.0) + part[1] - part[0]
            for cause, piece in pieces.items():
                found.setdefault(cause, []).append(piece)
    causes = sorted((Cause(c, len(parts), sum(parts)) for c, parts in found.items()), key=lambda c: (-c.us, c.cause))
    whole = trace.end_us * len(gpus)
    return GpuIdle(us, us / whole if whole else 0.0, len(gpus), tuple(causes), len(late))


class _Judge:
    """Finds what a gap waited for."""

    def __init__(self, trace: Trace, work: Sequence[Span], issued: Sequence[Launch]) -> None:
        host = [s for s in trace.spans if s.lane == HOST and s.end_us > s.start_us]
        self._held = Overlapping(s for s in host if s.kind is SpanKind.BLOCKED)
        self._work = Overlapping(s for s in host if s.kind is SpanKind.HOST)
        self._calls = Overlapping(Span(HOST, _OTHER, SpanKind.HOST, *launch.interval) for launch in issued)
        self._drains = Drains((s for s in host if s.kind is SpanKind.BLOCKED), work)
        waits: dict[str, list[Span]] = {lane: [] for lane in trace.lanes}
        for span in trace.spans:
            if span.kind is SpanKind.WAIT:
                waits[span.lane].append(span)
        self._waits = {lane: Overlapping(spans) for lane, spans in waits.items()}

    def pieces(self, gap: Interval, then: Span | None) -> list[tuple[Interval, str]]:
        """The parts of a gap, each with its cause."""
        if then is None:
            return [(gap, DRAINED)]
        if then.submit_us is None or then.ready_us is None:
            return [(gap, self._late(gap, self._after(gap[1])))]
        begun = min(max(then.submit_us, gap[0]), gap[1])
        queued = min(max(then.ready_us, begun), gap[1])
        after = self._after(then.submit_us) if queued > gap[0] else ""
        found = [((gap[0], begun), self._late((gap[0], begun), after))] if begun > gap[0] else []
        if queued > begun:
            found.append(((begun, queued), IN_CALL + after))
        if gap[1] > queued:
            found += self._queued((queued, gap[1]), then.lane, then.ready_us <= gap[0])
        return found

    def _after(self, submit: float) -> str:
        """The blocking call that made the launch late, in words."""
        held = self._drains.before(submit)
        return f", after {family(held.name)}" if held is not None else ""

    def _queued(self, part: Interval, lane: str, before: bool) -> list[tuple[Interval, str]]:
        """Work that was queued and did not start: what its stream waited for, else what the GPU takes to start it."""
        found, left = [], [part]
        for wait in self._waits[lane].within(part):
            mine = [piece for room in left for piece in union([(wait.start_us, wait.end_us)], room)]
            found += [(piece, f"waiting: {family(wait.name)}") for piece in mine]
            left = [piece for room in left for piece in rest(mine, room)]
        cause = UNSEEN if part[1] - part[0] > LONG_US else QUEUED if before else LATENCY
        return [*found, *((piece, cause) for piece in left)]

    def _late(self, part: Interval, after: str) -> str:
        shares = self._shares(part)
        most = max(sorted(shares), key=lambda label: shares[label])
        if most.startswith("held by "):
            return f"the host was {most}"
        return f"the host was late{after or (': ' + most if most else '')}"

    def _shares(self, part: Interval) -> dict[str, float]:
        """What the host spent that time with: blocked, at work, in calls; the rest is nameless."""
        held, work = self._held.within(part), self._work.within(part)
        shares: dict[str, float] = {}
        for span in (*held, *work):
            label = f"held by {family(span.name)}" if span.kind is SpanKind.BLOCKED else family(span.name)
            shares[label] = shares.get(label, 0.0) + length(union([(span.start_us, span.end_us)], part))
        known = union(intervals([*held, *work]), part)
        calls = union(intervals(self._calls.within(part)), part)
        left = length(rest([*known, *calls], part))
        issuing = (part[1] - part[0]) - length(known) - left
        shares[_OTHER] = shares.get(_OTHER, 0.0) + max(issuing, 0.0)
        shares[""] = left
        return shares
