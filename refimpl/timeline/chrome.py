"""``to_chrome``: a Trace as Chrome trace events, for Perfetto and chrome://tracing."""

from collections.abc import Iterator
from typing import Any

from refimpl.program import Program, Span, Trace
from refimpl.program.ops import accesses
from refimpl.timeline.edges import drawn_edges

_PID = 1
_MARK_US = 0.1
"""Width of a record mark: viewers bind an arrow to a slice, and drop slices without a width."""


def to_chrome(trace: Trace, program: Program | None = None) -> dict[str, Any]:
    """The trace in Chrome's JSON object format: one thread a lane, an arrow from each call to the work that it
    queued.

    Args:
        trace: any trace.
        program: adds the ranges that each op reads and writes, its call site, and the arrows from record to wait.

    Returns:
        JSON values; ``json.dump`` them into a file and open it in ``ui.perfetto.dev``.

    Example:
        >>> from refimpl.program import SpanKind, Trace, TraceSource
        >>> span = Span("forward", "verify", SpanKind.RUN, 6.0, 16.0)
        >>> events = to_chrome(Trace(("host", "forward"), (span,), TraceSource.SCHEDULED))["traceEvents"]
        >>> [event["name"] for event in events if event["ph"] == "X"]
        ['verify']
    """
    tids = {lane: number for number, lane in enumerate(trace.lanes)}
    events = list(_threads(trace))
    for span in trace.spans:
        events.append(_slice(tids[span.lane], span.name, span.kind, span.start_us, span.us, _args(span, program)))
    events += _calls(trace, tids)
    if program is not None:
        events += _fences(trace, program, tids)
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


def _slice(tid: int, name: str, category: str, ts: float, us: float, args: dict[str, Any]) -> dict[str, Any]:
    event = {"ph": "X", "pid": _PID, "tid": tid, "name": name, "cat": str(category), "ts": ts, "dur": max(us, _MARK_US)}
    return {**event, "args": args} if args else event


def _calls(trace: Trace, tids: dict[str, int]) -> Iterator[dict[str, Any]]:
    """One slice on the host for each call, with an arrow to the first work that it queued."""
    seen: set[tuple[int | None, float]] = set()
    for span in trace.spans:
        if "host" not in tids or span.lane == "host" or span.submit_us is None or span.ready_us is None:
            continue
        if (span.op, span.submit_us) not in seen:
            seen.add((span.op, span.submit_us))
            name, number = f"call: {span.name}", len(seen)
            yield _slice(tids["host"], name, "call", span.submit_us, span.ready_us - span.submit_us, {})
            yield from _arrow(
                f"submit {number}", "submit", tids["host"], span.submit_us, tids[span.lane], span.start_us
            )


def _args(span: Span, program: Program | None) -> dict[str, Any]:
    if program is None or span.op is None:
        return {}
    op = program.ops[span.op]
    reads, writes = accesses(op)
    given = {
        "op": span.op,
        "step": op.step,
        "site": op.site,
        "reads": ", ".join(map(str, reads)),
        "writes": ", ".join(map(str, writes)),
    }
    return {key: value for key, value in given.items() if value not in (None, "")}


def _fences(trace: Trace, program: Program, tids: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Arrows from each record to the waits that took its capture."""
    for number, (event, source, target) in enumerate(drawn_edges(trace, program)):
        yield from _arrow(f"fence {number}", event, tids[source.lane], source.end_us, tids[target.lane], target.end_us)


def _arrow(id: str, name: str, from_tid: int, from_us: float, to_tid: int, to_us: float) -> list[dict[str, Any]]:
    common = {"pid": _PID, "id": id, "name": name, "cat": "order"}
    return [
        {**common, "ph": "s", "tid": from_tid, "ts": from_us},
        {**common, "ph": "f", "bp": "e", "tid": to_tid, "ts": to_us},
    ]
