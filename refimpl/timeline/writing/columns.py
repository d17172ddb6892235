"""``columns``: a Trace as the columns of numbers that pages draw and keep."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import floor
from typing import Any

from refimpl.order import EdgeKind
from refimpl.program import Program, Span, SpanKind, Trace
from refimpl.timeline.names import stem
from refimpl.timeline.ordering import SpanEdge, ordering

SCHEMA = "trace/1"
KINDS = tuple(SpanKind)
"""A span's kind is its place here: run, wait, record, blocked, host."""


def columns(
    trace: Trace,
    program: Program | None = None,
    *,
    id: str = "run",
    title: str = "",
    words: str = "",
    step_op: str | None = None,
) -> dict[str, Any]:
    """The trace as JSON values in columns: names once each, spans sorted by start, times to a nanosecond.

    Args:
        trace: any trace.
        program: what ran; adds the ordering edges between spans, and the starts of its steps.
        id, title, words: what the page calls the run, and says of it.
        step_op: name of the op whose starts mark the steps, without its number.

    Returns:
        What ``refimpl/view/run/run.js`` draws.

    Example:
        >>> from refimpl.program import Span, TraceSource
        >>> verify = Span("forward", "verify", SpanKind.RUN, 6.0, 16.25)
        >>> table = columns(Trace(("host", "forward"), (verify,), TraceSource.SCHEDULED))
        >>> table["names"], table["spans"]["lane"], table["spans"]["end"]
        (['verify'], [1], [16.25])
    """
    order = sorted(range(len(trace.spans)), key=lambda place: trace.spans[place].start_us)
    spans = [trace.spans[place] for place in order]
    names, calls = _table(s.name for s in spans), _table(s.call for s in spans if s.call is not None)
    lanes = {lane: number for number, lane in enumerate(trace.lanes)}
    return {
        "schema": SCHEMA,
        "id": id,
        "title": title,
        "words": words,
        "source": str(trace.source),
        "device": trace.device,
        "lanes": list(trace.lanes),
        "names": list(names),
        "calls": list(calls),
        "spans": {
            "lane": [lanes[s.lane] for s in spans],
            "name": [names[s.name] for s in spans],
            "kind": [KINDS.index(s.kind) for s in spans],
            "start": [rounded(s.start_us) for s in spans],
            "end": [rounded(s.end_us) for s in spans],
            "submit": [None if s.submit_us is None else rounded(s.submit_us) for s in spans],
            "ready": [None if s.ready_us is None else rounded(s.ready_us) for s in spans],
            "call": [-1 if s.call is None else calls[s.call] for s in spans],
            "op": [-1 if s.op is None else s.op for s in spans],
        },
        "edges": _edges(() if program is None else ordering(trace, program), order),
        "steps": [rounded(us) for us in steps_of(trace, program, step_op)],
    }


def rounded(us: float) -> float:
    """A time to the nanosecond, halves up: a rule that JavaScript's numbers follow to the bit.

    Example:
        >>> rounded(0.0005), rounded(12.0), rounded(-0.0004)
        (0.001, 12, 0)
    """
    whole = floor(us * 1000 + 0.5)
    return whole // 1000 if whole % 1000 == 0 else whole / 1000


def steps_of(trace: Trace, program: Program | None, step_op: str | None) -> list[float]:
    """When each step begins: with the op of that name, on a stream rather than on the host; or where the program says
    which step an op is of, with the first thing that the step did; empty where neither is known.

    A profile shows the kernels of an op, each by its name. Those of one step are told by the number in the name, else
    by the host's annotation of that name in which they were launched, else by their launch.
    """
    if step_op is not None:
        named = sorted((s for s in trace.spans if step_op in (s.name, stem(s.name))), key=lambda s: s.start_us)
        ran, noted = ([s for s in named if s.kind is kind] for kind in (SpanKind.RUN, SpanKind.HOST))
        return sorted(_first_of_each(ran, noted) if ran else [s.start_us for s in noted])
    begun: dict[int, float] = {}
    for span in trace.spans if program is not None else ():
        step = None if program is None or span.op is None else program.ops[span.op].step
        if step is not None:
            at = span.start_us if span.submit_us is None else min(span.start_us, span.submit_us)
            begun[step] = min(begun.get(step, at), at)
    return sorted(begun.values())


def _first_of_each(ran: Sequence[Span], noted: Sequence[Span]) -> Iterable[float]:
    """The start of the first span of each step, of spans in order of time."""
    numbered = len({s.name for s in ran}) > 1
    notes = [s.start_us for s in noted]
    first: dict[object, float] = {}
    for place, span in enumerate(ran):
        submit = span.submit_us
        launch = place if submit is None else bisect_right(notes, submit) if notes else submit
        first.setdefault(span.name if numbered else launch, span.start_us)
    return first.values()


def _table(texts: Iterable[str]) -> dict[str, int]:
    """Each text once, in the order in which they come, with its number."""
    numbers: dict[str, int] = {}
    for text in texts:
        numbers.setdefault(text, len(numbers))
    return numbers


def _edges(edges: Sequence[SpanEdge], order: Sequence[int]) -> dict[str, Any]:
    now = {place: number for number, place in enumerate(order)}
    kinds = [kind for kind in EdgeKind if any(edge.kind is kind for edge in edges)]
    return {
        "from": [now[edge.source] for edge in edges],
        "to": [now[edge.target] for edge in edges],
        "kind": [kinds.index(edge.kind) for edge in edges],
        "kinds": [str(kind) for kind in kinds],
    }
