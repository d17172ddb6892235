"""``to_chrome``: a Trace as Chrome trace events, for Perfetto and chrome://tracing."""

from collections.abc import Iterator, Sequence
from typing import Any

from refimpl.program import Program, Trace
from refimpl.timeline.ordering import SpanEdge
from refimpl.timeline.writing.export import Flow, Slice, exported

_PID = 1
_MARK_US = 0.1
"""Width of a mark, which takes no time: viewers drop slices without a width, and with them the arrows."""
_LEAST_US = 0.005
"""What is shorter than this is drawn as a mark."""
_NS = 0.001


def to_chrome(trace: Trace, program: Program | None = None, edges: Sequence[SpanEdge] | None = None) -> dict[str, Any]:
    """The trace in Chrome's JSON object format: one thread a lane, an arrow from each call to the work that it
    queued.

    Args:
        trace: any trace.
        program: adds the ranges that each op reads and writes, its call site, and an arrow for every ordering edge.
        edges: the ordering edges, where they are known without a program.

    Returns:
        JSON values; ``json.dump`` them into a file and open it in ``ui.perfetto.dev``.

    Example:
        >>> from refimpl.program import Span, SpanKind, Trace, TraceSource
        >>> span = Span("forward", "verify", SpanKind.RUN, 6.0, 16.0)
        >>> events = to_chrome(Trace(("host", "forward"), (span,), TraceSource.SCHEDULED))["traceEvents"]
        >>> [event["name"] for event in events if event["ph"] == "X"]
        ['verify']
    """
    tids = {lane: number for number, lane in enumerate(trace.lanes)}
    slices, flows = exported(trace, program, edges)
    starts = _starts(slices)
    events = list(_threads(trace))
    events += [_slice(tids[s.lane], s, start) for s, start in zip(slices, starts, strict=True)]
    for number, flow in enumerate(flows):
        events += _arrow(number, flow, slices, starts, tids)
    return {
        "displayTimeUnit": "ms",
        "otherData": {"source": str(trace.source), "device": trace.device},
        "traceEvents": events,
    }


def _threads(trace: Trace) -> Iterator[dict[str, Any]]:
    for number, lane in enumerate(trace.lanes):
        common = {"ph": "M", "pid": _PID, "tid": number}
        yield {**common, "name": "thread_name", "args": {"name": lane}}
        yield {**common, "name": "thread_sort_index", "args": {"sort_index": number}}


def _starts(slices: list[Slice]) -> list[float]:
    """Where each slice is drawn from: a mark reaches back into what its lane did before it, to be seen in it."""
    starts = [s.start for s in slices]
    before: dict[str, tuple[float, float]] = {}
    for number in sorted(range(len(slices)), key=lambda number: slices[number].start):
        s = slices[number]
        begun, ended = before.get(s.lane, (-_MARK_US, 0.0))
        if s.end - s.start < _LEAST_US:
            starts[number] = max(s.end - _MARK_US, begun if ended >= s.end else ended)
        before[s.lane] = (starts[number], s.end)
    return starts


def _slice(tid: int, s: Slice, start: float) -> dict[str, Any]:
    us = s.end - start or _MARK_US
    event = {"ph": "X", "pid": _PID, "tid": tid, "name": s.name, "cat": s.category, "ts": start, "dur": us}
    return {**event, "args": s.args} if s.args else event


def _arrow(
    number: int, flow: Flow, slices: list[Slice], starts: list[float], tids: dict[str, int]
) -> list[dict[str, Any]]:
    """From the last nanoseconds of one slice to the first of what starts after it, or the last of what waited for it:
    viewers bind an end of an arrow to the slice that is open at its time."""
    source, target = slices[flow.source], slices[flow.target]
    to_us = starts[flow.target] if starts[flow.target] >= source.end else target.end - _NS
    from_us = max(starts[flow.source], min(source.end - 2 * _NS, to_us))
    common = {"pid": _PID, "id": number, "name": flow.name, "cat": flow.kind}
    return [
        {**common, "ph": "s", "tid": tids[source.lane], "ts": from_us},
        {**common, "ph": "f", "bp": "e", "tid": tids[target.lane], "ts": to_us},
    ]
