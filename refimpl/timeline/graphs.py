"""The nodes of a graph launch as tasks."""

from collections.abc import Mapping
from dataclasses import dataclass

from refimpl.program import SpanKind, topological
from refimpl.program.ops import GraphLaunch, Node
from refimpl.timeline.tasks import Task


@dataclass(frozen=True)
class NodeTask:
    """A node of a graph with its task; ``records`` is the event that it re-arms."""

    name: str
    kind: SpanKind
    task: Task
    records: str | None


def node_tasks(op: GraphLaunch, begin: Task, captures: Mapping[str, Task], node_us: float) -> list[NodeTask]:
    """The nodes in an order that their dependencies allow, not yet timed.

    A node starts when its ``deps`` have ended, and not before ``begin``. A wait node takes its capture from
    ``captures``, which are those current before the launch. With ``us`` on the launch, kernel nodes are stretched
    alike so that the longest path takes ``us``.

    Args:
        op: the launch.
        begin: the point that the stream reaches before the graph.
        captures: what each event holds at the call.
        node_us: duration of a kernel node without one, in microseconds.
    """
    nodes = topological(op.nodes)
    scale = _scale(op, nodes, node_us)
    made: dict[str, NodeTask] = {}
    for node in nodes:
        capture = captures.get(node.wait) if node.wait is not None else None
        task = Task(
            0.0,
            us=_own_us(node, node_us) * scale,
            after=(begin, *(made[dep].task for dep in node.deps)),
            until=() if capture is None else (capture,),
        )
        made[node.name] = NodeTask(node.name, _kind(node), task, node.record)
    return list(made.values())


def _kind(node: Node) -> SpanKind:
    if node.record is not None:
        return SpanKind.RECORD
    return SpanKind.RUN if node.wait is None else SpanKind.WAIT


def _own_us(node: Node, node_us: float) -> float:
    if _kind(node) is not SpanKind.RUN:
        return 0.0
    return node_us if node.us is None else node.us


def _scale(op: GraphLaunch, nodes: tuple[Node, ...], node_us: float) -> float:
    """What kernel nodes are stretched by, so that the longest path over the dependencies takes the launch's ``us``."""
    if op.us is None:
        return 1.0
    reached: dict[str, float] = {}
    for node in nodes:
        reached[node.name] = max((reached[dep] for dep in node.deps), default=0.0) + _own_us(node, node_us)
    longest = max(reached.values(), default=0.0)
    return op.us / longest if longest else 0.0
