"""What a trace's streams ran and which calls queued it, as the accounts of a trace need it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline.intervals import Interval
from refimpl.timeline.names import stem
from refimpl.timeline.reading.places import is_host

_WHERE = " in "


@dataclass(frozen=True)
class Launch:
    """A call that queued GPU work.

    Args:
        submit_us, ready_us: when the host began and ended it.
        call: the runtime's own name, where it is known.
        first: what it queued; of several spans the one that starts first.
    """

    submit_us: float
    ready_us: float
    call: str | None
    first: Span

    @property
    def name(self) -> str:
        """What the call is named in accounts."""
        return self.call or "launch"

    @property
    def interval(self) -> Interval:
        """When the host was in it."""
        return self.submit_us, self.ready_us


def works(trace: Trace) -> list[Span]:
    """What ran on streams and took time, in order of (start, end)."""
    found = (s for s in trace.spans if s.kind is SpanKind.RUN and s.end_us > s.start_us and not is_host(s.lane))
    return sorted(found, key=lambda s: (s.start_us, s.end_us))


def launches(work: Iterable[Span]) -> list[Launch]:
    """The calls behind work, in order of time: one for all work that was submitted at one moment.

    Args:
        work: in order of its starts.
    """
    found: dict[float, Launch] = {}
    for span in work:
        if span.submit_us is None or span.ready_us is None:
            continue
        known = found.get(span.submit_us)
        first, call = (known.first, known.call) if known is not None else (span, span.call)
        ready = max(span.ready_us, known.ready_us) if known is not None else span.ready_us
        found[span.submit_us] = Launch(span.submit_us, ready, call, first)
    return sorted(found.values(), key=lambda launch: launch.submit_us)


@lru_cache(maxsize=4096)
def family(name: str) -> str:
    """What the spans of all steps are called together.

    Example:
        >>> family("verify 3"), family("synchronize(event 24) in process 0")
        ('verify', 'synchronize(event) in process')
    """
    return _WHERE.join(stem(part) for part in name.split(_WHERE))


def on_lane(spans: Iterable[Span], lane: str, *kinds: SpanKind) -> list[Span]:
    """The spans of those kinds on a lane that take time, in order of (start, end)."""
    found = (s for s in spans if s.lane == lane and s.kind in kinds and s.end_us > s.start_us)
    return sorted(found, key=lambda s: (s.start_us, s.end_us))


def intervals(spans: Sequence[Span]) -> list[Interval]:
    """Their times."""
    return [(s.start_us, s.end_us) for s in spans]
