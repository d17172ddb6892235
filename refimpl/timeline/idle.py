"""``gaps``: the stretches in which nothing ran, and what each of them waited for."""

from bisect import bisect_left
from dataclasses import dataclass

from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline.intervals import Interval, Overlapping, rest
from refimpl.timeline.names import stem


@dataclass(frozen=True)
class Idle:
    """A stretch in which no stream (or one lane) ran anything.

    Args:
        from_us, to_us: from the trace's beginning.
        cause: what it waited for, in words: ``"host: build"``, ``"host held by synchronize(verify_done)"``,
            ``"wait(copy_done)"``, ``"no more work"``.
    """

    from_us: float
    to_us: float
    cause: str

    @property
    def us(self) -> float:
        """Duration in microseconds."""
        return self.to_us - self.from_us


def gaps(trace: Trace, lane: str | None = None, window: Interval | None = None) -> tuple[Idle, ...]:
    """The stretches in which nothing ran, each with its cause, in order of time.

    A gap is cut where its cause changes: the waits of the lane that runs next are named, what is left is the host's.

    Args:
        trace: scheduled, simulated or measured; a measured one knows only of waits that the profiler reported.
        lane: one stream, or None for the whole GPU (no stream busy).
        window: from, to in microseconds; the whole trace when None.

    Example:
        >>> from refimpl.program import TraceSource
        >>> build = Span("host", "build 0", SpanKind.HOST, 0, 80)
        >>> verify = Span("forward", "verify 0", SpanKind.RUN, 90, 200)
        >>> gaps(Trace(("host", "forward"), (build, verify), TraceSource.MEASURED))
        (Idle(from_us=0.0, to_us=90, cause='host: build'),)
    """
    window = window or (0.0, trace.end_us)
    busy = sorted(
        (s for s in trace.spans if s.kind is SpanKind.RUN and (lane is None or s.lane == lane)),
        key=lambda s: s.start_us,
    )
    causes = _Causes(trace)
    found: list[Idle] = []
    for gap in rest(((s.start_us, s.end_us) for s in busy), window):
        then = bisect_left(busy, gap[1] - 1e-9, key=lambda s: s.start_us)
        found += causes.of(gap, busy[then]) if then < len(busy) else [Idle(*gap, "no more work")]
    return tuple(found)


class _Causes:
    """The waits of each stream and what the host did, by time."""

    def __init__(self, trace: Trace) -> None:
        self.host = Overlapping(s for s in trace.spans if s.lane == "host")
        self.waits = {
            lane: Overlapping(s for s in trace.spans if s.lane == lane and s.kind is SpanKind.WAIT)
            for lane in trace.lanes
        }

    def of(self, gap: Interval, then: Span) -> list[Idle]:
        """The pieces of a gap that ends when ``then`` starts."""
        pieces: list[Idle] = []
        at = gap[0]
        for wait in self.waits[then.lane].within(gap):  # of two waits side by side in a graph, each has its own part
            start, end = max(wait.start_us, at), min(wait.end_us, gap[1])
            if end > start:
                pieces.append(Idle(start, end, stem(wait.name)))
                at = end
        left = rest([(piece.from_us, piece.to_us) for piece in pieces], gap)
        return sorted([*pieces, *(Idle(*part, self.host_in(part)) for part in left)], key=lambda piece: piece.from_us)

    def host_in(self, part: Interval) -> str:
        """What the host spent most of that time with."""
        shares: dict[str, float] = {}
        for span in self.host.within(part):
            words = "host held by" if span.kind is SpanKind.BLOCKED else "host:"
            cause = f"{words} {stem(span.name)}"
            shares[cause] = shares.get(cause, 0.0) + min(span.end_us, part[1]) - max(span.start_us, part[0])
        return max(shares, key=lambda cause: shares[cause], default="host: issuing calls")
