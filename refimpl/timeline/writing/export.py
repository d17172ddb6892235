"""What the exports to viewers have in common: slices on lanes, and arrows between slices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from refimpl.program import Program, Span, Trace
from refimpl.program.ops import accesses
from refimpl.timeline.ordering import SpanEdge, ordering
from refimpl.timeline.reading.places import is_host

CALL = "call"
"""The category of the calls that queue work, which a Trace keeps as times of the work."""


@dataclass(frozen=True)
class Slice:
    """A stretch of one lane, as a viewer shows it.

    Args:
        lane: where it stands.
        name: what ran.
        category: the span's kind, or ``"call"``.
        start, end: in microseconds.
        args: what a viewer tells of it when it is clicked.
    """

    lane: str
    name: str
    category: str
    start: float
    end: float
    args: dict[str, Any]


@dataclass(frozen=True)
class Flow:
    """An arrow from one slice to another, by their places in the list of slices.

    Args:
        source, target: places of the slices.
        kind: the rule behind it, or ``"submit"`` for a call and the work that it queued.
        name: the event, stream or flag that makes it so, or the rule.
    """

    source: int
    target: int
    kind: str
    name: str


def exported(
    trace: Trace, program: Program | None, edges: Sequence[SpanEdge] | None = None
) -> tuple[list[Slice], list[Flow]]:
    """A slice for each span, in the trace's order, then one for each call that queued work; and all arrows.

    Args:
        trace: any trace.
        program: what ran; adds to the slices what each op touches.
        edges: the ordering edges; those of the program when None.
    """
    slices = [
        Slice(s.lane, s.name, str(s.kind), s.start_us, s.end_us, _args(s, number, program))
        for number, s in enumerate(trace.spans)
    ]
    flows = []
    for first, call in _calls(trace):
        flows.append(Flow(len(slices), first, "submit", call.name))
        slices.append(call)
    if edges is None:
        edges = () if program is None else ordering(trace, program)
    for edge in edges:
        flows.append(Flow(edge.source, edge.target, str(edge.kind), edge.via or str(edge.kind)))
    return slices, flows


def _calls(trace: Trace) -> Iterator[tuple[int, Slice]]:
    """Each call on the host that queued work, with the place of the first span that it queued."""
    seen: set[tuple[int | None, float]] = set()
    for place, span in enumerate(trace.spans):
        if "host" not in trace.lanes or is_host(span.lane) or span.submit_us is None or span.ready_us is None:
            continue
        if (span.op, span.submit_us) not in seen:
            seen.add((span.op, span.submit_us))
            yield place, Slice("host", f"call: {span.name}", CALL, span.submit_us, span.ready_us, {})


def _args(span: Span, number: int, program: Program | None) -> dict[str, Any]:
    given: dict[str, Any] = {"span": number, "call": span.call}
    if program is not None and span.op is not None:
        op = program.ops[span.op]
        reads, writes = accesses(op)
        given |= {
            "op": span.op,
            "step": op.step,
            "site": op.site,
            "reads": ", ".join(map(str, reads)),
            "writes": ", ".join(map(str, writes)),
        }
    return {key: value for key, value in given.items() if value not in (None, "")}
