"""A timeline in words, for readers who cannot see it."""

from collections.abc import Sequence

from refimpl.order import Race
from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline import accounts, stem

_SOURCES = {
    "scheduled": "scheduled from a cost model",
    "simulated": "run on the simulated device",
    "measured": "measured",
}


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
    parts += [_order(trace), *_blocked(trace), *_waits(trace)]
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
    held = accounts(trace).blocked
    return [f"The host is held {b.times} times by {b.call}, {duration_words(b.us)} in all." for b in held[:3]]


def _waits(trace: Trace) -> list[str]:
    waits = [s for s in trace.spans if s.kind is SpanKind.WAIT]
    held = dict.fromkeys((s.lane, stem(s.name)) for s in waits)
    return [f"Stream {lane} waits: {name}." for lane, name in held][:4]


def _hazard(race: Race) -> str:
    a, b = race.first, race.second
    ops = f"{a.name} on {a.lane} and {b.name} on {b.lane}"
    return f"Hazard: {race.kind} on {race.bytes.buf} between {ops}, which nothing orders."
