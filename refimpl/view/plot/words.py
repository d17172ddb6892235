"""A timeline in words, for readers who cannot see it."""

from collections.abc import Sequence

from refimpl.order import Race
from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline import stem
from refimpl.timeline.intervals import length, union

_SOURCES = {
    "scheduled": "scheduled from a cost model",
    "simulated": "run on the simulated device",
    "measured": "measured",
}
_LONG = 1000
"""Spans from which a timeline is a run, and told by what its lanes take."""


def source_words(trace: Trace) -> str:
    """How the times are known, with the device when they were measured."""
    words = _SOURCES[str(trace.source)]
    return f"{words} on {trace.device}" if trace.source == "measured" and trace.device else words


def duration_words(us: float) -> str:
    """A duration in milliseconds, or in microseconds when it is short.

    Example:
        >>> duration_words(1234.0), duration_words(56.0)
        ('1.23 ms', '56 µs')
    """
    return f"{us / 1000:.2f} ms" if us >= 1000 else f"{us:.0f} µs"


def alt_text(trace: Trace, races: Sequence[Race] | None = None) -> str:
    """The picture in words: its lanes, the order of the first step, what holds the host, which streams wait, the
    hazards.

    Args:
        trace: what is drawn.
        races: the hazards drawn on it; None when the order was not checked, and then nothing is said of hazards.

    Example:
        >>> from refimpl.program import TraceSource
        >>> verify = Span("forward", "verify 0", SpanKind.RUN, 0, 1500)
        >>> alt_text(Trace(("host", "forward"), (verify,), TraceSource.SCHEDULED), races=()).split(". ")[2:]
        ['In order of start: verify (forward)', 'No hazard.']
    """
    parts = [f"Timeline of {duration_words(trace.end_us)}, {source_words(trace)}.", f"Lanes: {', '.join(trace.lanes)}."]
    parts += [_order(trace), *_busy(trace), *_blocked(trace), *_waits(trace)]
    if races is not None:
        parts += [*map(_hazard, races[:3]), *([f"{len(races) - 3} more hazards."] if len(races) > 3 else [])]
        parts += [] if races else ["No hazard."]
    return " ".join(part for part in parts if part)


def _order(trace: Trace) -> str:
    """Each op once, in the order in which the first of its name starts."""
    bars = [s for s in trace.spans if s.kind in (SpanKind.RUN, SpanKind.HOST) and s.us > 0]
    first: dict[tuple[str, str], Span] = {}
    for span in sorted(bars, key=lambda s: s.start_us):
        first.setdefault((stem(span.name), span.lane), span)
    shown = [f"{name} ({lane})" for name, lane in first][:12]
    more = ["and more"] if len(first) > 12 else []
    return f"In order of start: {', '.join([*shown, *more])}." if shown else ""


def _blocked(trace: Trace) -> list[str]:
    held: dict[str, list[float]] = {}
    for span in trace.spans:
        if span.kind is SpanKind.BLOCKED and span.us > 0:
            held.setdefault(stem(span.name), []).append(span.us)
    longest = sorted(held.items(), key=lambda item: -sum(item[1]))[:3]
    return [f"The host is held {len(us)} times by {call}, {duration_words(sum(us))} in all." for call, us in longest]


def _busy(trace: Trace) -> list[str]:
    """Of a run too long to be told span by span, how much of the time each lane works."""
    if len(trace.spans) < _LONG or not trace.end_us:
        return []
    window = (0.0, trace.end_us)
    kinds = (SpanKind.RUN, SpanKind.HOST)
    by_lane: dict[str, list[tuple[float, float]]] = {lane: [] for lane in trace.lanes}
    for span in trace.spans:
        if span.kind in kinds:
            by_lane[span.lane].append((span.start_us, span.end_us))
    shares = {lane: length(union(times, window)) / trace.end_us for lane, times in by_lane.items()}
    return [f"Busy: {', '.join(f'{lane} {share:.0%}' for lane, share in shares.items())}."]


def _waits(trace: Trace) -> list[str]:
    waits = [s for s in trace.spans if s.kind is SpanKind.WAIT]
    held = dict.fromkeys((s.lane, stem(s.name)) for s in waits)
    return [f"Stream {lane} waits: {name}." for lane, name in held][:4]


def _hazard(race: Race) -> str:
    a, b = race.first, race.second
    ops = f"{a.name} on {a.lane} and {b.name} on {b.lane}"
    return f"Hazard: {race.kind} on {race.bytes.buf} between {ops}, which nothing orders."
