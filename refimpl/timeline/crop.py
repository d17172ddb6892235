"""A part of a trace, as a trace of its own."""

from dataclasses import replace

from refimpl.program import Trace


def crop(trace: Trace, from_us: float, to_us: float) -> Trace:
    """What ran between two times, from 0; lanes on which nothing did are left out, spans that reach in are cut.

    Args:
        trace: any trace.
        from_us, to_us: the window, in microseconds.

    Example:
        >>> from refimpl.program import Span, SpanKind, TraceSource
        >>> verify = Span("forward", "verify", SpanKind.RUN, 10, 50)
        >>> part = crop(Trace(("host", "forward"), (verify,), TraceSource.MEASURED), 30, 90)
        >>> part.lanes, part.spans[0].start_us, part.spans[0].end_us
        (('forward',), 0, 20)
    """
    inside = [s for s in trace.spans if s.start_us <= to_us and s.end_us >= from_us]
    cut = tuple(replace(s, start_us=max(s.start_us, from_us), end_us=min(s.end_us, to_us)) for s in inside)
    used = {s.lane for s in cut}
    return shifted(replace(trace, spans=cut, lanes=tuple(lane for lane in trace.lanes if lane in used)), -from_us)


def shifted(trace: Trace, by_us: float) -> Trace:
    """The trace later by so many microseconds."""

    def later(us: float | None) -> float | None:
        return None if us is None else us + by_us

    moved = (
        replace(
            s,
            start_us=s.start_us + by_us,
            end_us=s.end_us + by_us,
            submit_us=later(s.submit_us),
            ready_us=later(s.ready_us),
        )
        for s in trace.spans
    )
    return replace(trace, spans=tuple(moved))
