"""``ordering``: every edge that a program's rules put between two spans of its trace, for exports and pages."""

from collections.abc import Iterator
from dataclasses import dataclass

from refimpl.order import Edge as StepEdge
from refimpl.order import EdgeKind, Graph, Step, build
from refimpl.program import GraphLaunch, Program, Span, SpanKind, StreamWaitStream, Trace

_SUBMITS = EdgeKind.SUBMIT
_QUEUES = (EdgeKind.FIFO, EdgeKind.HOST)
"""Edges along one lane, which the lane itself shows."""


@dataclass(frozen=True)
class SpanEdge:
    """One span comes before another, because of a rule.

    Args:
        source, target: places of the spans in ``Trace.spans``.
        kind: the rule.
        via: the event, stream, flag or agent that makes it so.
    """

    source: int
    target: int
    kind: EdgeKind
    via: str = ""


def ordering(trace: Trace, program: Program) -> tuple[SpanEdge, ...]:
    """The ordering edges of a program between the spans of its trace, in issue order of their targets.

    Captures to waits, streams to those that wait for them, the legacy stream's barriers, dependencies of graph nodes,
    work to the host that is held for it, agents, the allocator, and the write of a flag that released its wait. What a
    lane shows by itself, the order of its own queue, is left out, and so are the calls that queue work: their times
    stand in each span.

    A step without a span, such as the mark that ``wait_stream`` takes, hands on what it comes after.

    Example:
        >>> from refimpl.program import EventRecord, Launch, Stream, StreamWaitEvent
        >>> from refimpl.timeline import schedule
        >>> program = Program(
        ...     streams={"a": Stream(), "b": Stream()},
        ...     ops=(Launch(stream="a"), EventRecord(event="e", stream="a"), StreamWaitEvent(event="e", stream="b")),
        ... )
        >>> [(edge.source, edge.target, str(edge.kind), edge.via) for edge in ordering(schedule(program), program)]
        [(1, 2, 'event', 'e')]
    """
    return tuple(dict.fromkeys(_Walk(trace, program, build(program)).edges()))


_From = tuple[int, EdgeKind, str]
"""A span that something comes after, and why."""


class _Walk:
    """Through the steps of a program in issue order; ``hidden`` holds what steps without a span come after."""

    def __init__(self, trace: Trace, program: Program, graph: Graph) -> None:
        self._trace, self._program, self._graph = trace, program, graph
        self._span_of = _places(trace, program, graph)
        self._hidden: dict[int, tuple[_From, ...]] = {}
        self._released = _writes(trace, graph, self._span_of)

    def edges(self) -> Iterator[SpanEdge]:
        for step, into in zip(self._graph.steps, self._graph.into, strict=True):
            own = self._span_of.get(step.index)
            sources = [source for edge in into if edge.kind is not _SUBMITS for source in self._sources(edge)]
            if own is None:
                self._hidden[step.index] = self._last(sources)
                continue
            if step.flag is not None and step.flag in self._released:
                sources.append((self._released[step.flag], EdgeKind.FLAG, step.flag))
            for source, kind, via in sources:
                if source != own and not (kind in _QUEUES and self._lane(source) == self._lane(own)):
                    yield SpanEdge(source, own, EdgeKind.LEGACY if kind in _QUEUES else kind, via)

    def _sources(self, edge: StepEdge) -> Iterator[_From]:
        """The spans behind an edge; those behind a step without a span keep their reason where ours says nothing."""
        own = self._span_of.get(edge.before)
        if own is not None:
            yield own, edge.kind, edge.via
        elif edge.kind is not EdgeKind.HOST:
            plain = edge.kind in (EdgeKind.FIFO, EdgeKind.GRAPH)
            for source, kind, via in self._hidden.get(edge.before, ()):
                yield (source, kind, via) if plain else (source, edge.kind, edge.via)

    def _last(self, sources: list[_From]) -> tuple[_From, ...]:
        """Of each lane only what its last op gave: the lane orders the rest."""
        last: dict[str, int] = {}
        for source, _, _ in sources:
            lane = self._lane(source)
            last[lane] = max(last.get(lane, -1), self._op(source))
        return tuple(dict.fromkeys(s for s in sources if self._op(s[0]) == last[self._lane(s[0])]))

    def _lane(self, span: int) -> str:
        return self._trace.spans[span].lane

    def _op(self, span: int) -> int:
        return self._trace.spans[span].op or 0


def _places(trace: Trace, program: Program, graph: Graph) -> dict[int, int]:
    """The span of each step that has one."""
    by_op: dict[int, list[int]] = {}
    for place, span in enumerate(trace.spans):
        if span.op is not None:
            by_op.setdefault(span.op, []).append(place)
    first: dict[int, int] = {}
    places: dict[int, int] = {}
    for step in graph.steps:
        begins = first.setdefault(step.op, step.index) == step.index
        fitting = [k for k in by_op.get(step.op, ()) if (trace.spans[k].lane == "host") is (step.lane == "host")]
        named = _named(step, begins, program, [(k, trace.spans[k]) for k in fitting])
        if named:
            places[step.index] = max(named, key=lambda k: trace.spans[k].end_us)
    return places


def _named(step: Step, begins: bool, program: Program, spans: list[tuple[int, Span]]) -> list[int]:
    """Which spans of an op show this step of it: a graph has one a node, or one for all."""
    op = program.ops[step.op]
    every = [k for k, _ in spans]
    if isinstance(op, StreamWaitStream) and begins:  # the mark on the other stream
        return [k for k, span in spans if span.lane == step.lane and span.kind is SpanKind.RECORD]
    if isinstance(op, GraphLaunch) and len(spans) > 1:
        node = step.name.removeprefix(f"{op.name}/")
        return [] if begins else [k for k, span in spans if span.name == node] or every
    return every


def _writes(trace: Trace, graph: Graph, span_of: dict[int, int]) -> dict[str, int]:
    """The write of each flag that ended first: waits for the flag end with it."""
    first: dict[str, int] = {}
    for step in graph.steps:
        place = span_of.get(step.index)
        if step.sets is not None and place is not None:
            known = first.get(step.sets)
            if known is None or trace.spans[place].end_us < trace.spans[known].end_us:
                first[step.sets] = place
    return first
