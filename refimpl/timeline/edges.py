"""Which record each wait of a program waits for: the arrows of a picture."""

from collections.abc import Iterator
from dataclasses import dataclass

from refimpl.order import runs_on
from refimpl.program import Program, Span, Trace, topological
from refimpl.program import ops as o


@dataclass(frozen=True)
class Edge:
    """A wait, and the record whose capture was current at its call.

    Args:
        event: what the edge is called: the event, or the stream of a ``stream_wait_stream``.
        source, target: op indices of the record (or of the last op that the stream held) and of the wait.
        source_node, target_node: names of the graph nodes, where those ops are graph launches.
        blocks_host: True when it is the host that waits.
    """

    event: str
    source: int
    target: int
    source_node: str | None = None
    target_node: str | None = None
    blocks_host: bool = False


def event_edges(program: Program) -> tuple[Edge, ...]:
    """The edges that events and streams put between the ops of a program, in issue order of the waits.

    A wait on an event that was never recorded gives none. Legacy-stream barriers and device-wide synchronizes are
    left out: they have no one source.

    Example:
        >>> from refimpl.program import Stream
        >>> program = Program(
        ...     streams={"a": Stream(), "b": Stream()},
        ...     ops=(o.EventRecord(event="e", stream="a"), o.StreamWaitEvent(event="e", stream="b")),
        ... )
        >>> [(edge.event, edge.source, edge.target) for edge in event_edges(program)]
        [('e', 0, 1)]
    """
    edges: list[Edge] = []
    held: dict[str, tuple[int, str | None]] = {}
    tails: dict[str, int] = {}
    for index, op in enumerate(program.ops):
        match op:
            case o.EventRecord():
                held[op.event] = (index, None)
            case o.StreamWaitEvent() if op.event in held:
                edges.append(Edge(op.event, held[op.event][0], index, held[op.event][1]))
            case o.EventSync() | o.EventQuery() if op.event in held:
                edges.append(Edge(op.event, held[op.event][0], index, held[op.event][1], blocks_host=True))
            case o.StreamWaitStream() if op.on in tails:
                edges.append(Edge(op.on, tails[op.on], index))
            case o.StreamSync() | o.StreamQuery() if op.stream in tails:
                edges.append(Edge(op.stream, tails[op.stream], index, blocks_host=True))
            case o.GraphLaunch():
                edges += _of_graph(index, op, held)
        stream = runs_on(op) if isinstance(op, o.Memcpy | o.Memset) else getattr(op, "stream", None)
        if stream is not None and not isinstance(
            op, o.StreamSync | o.StreamQuery | o.TensorAlloc | o.TensorFree | o.RecordStream
        ):
            tails[stream] = index
    return tuple(edges)


def drawn_edges(trace: Trace, program: Program) -> Iterator[tuple[str, Span, Span]]:
    """The program's event edges whose two ends the trace shows: name, the record's span, the wait's span."""
    by_op: dict[int, list[Span]] = {}
    for span in trace.spans:
        if span.op is not None:
            by_op.setdefault(span.op, []).append(span)
    for edge in event_edges(program):
        source = _end_of(by_op.get(edge.source, []), edge.source_node, on_host=False)
        target = _end_of(by_op.get(edge.target, []), edge.target_node, on_host=edge.blocks_host)
        if source is not None and target is not None:
            yield edge.event, source, target


def _end_of(spans: list[Span], node: str | None, on_host: bool) -> Span | None:
    """The span of an op, or of one node of it, that ends last on that side."""
    fitting = [s for s in spans if (s.lane == "host") is on_host and (node is None or s.name == node)]
    return max(fitting, key=lambda span: span.end_us, default=None)


def _of_graph(index: int, op: o.GraphLaunch, held: dict[str, tuple[int, str | None]]) -> list[Edge]:
    """Edges into the graph's wait nodes, by the captures current at the launch; its records take their events after."""
    waits = [node for node in op.nodes if node.wait is not None and node.wait in held]
    edges = [Edge(n.wait, held[n.wait][0], index, held[n.wait][1], n.name) for n in waits if n.wait is not None]
    held.update({node.record: (index, node.name) for node in topological(op.nodes) if node.record is not None})
    return edges
