"""Why two ops are ordered, edge by edge, or what is at stake when they are not."""

import textwrap
from collections import deque
from dataclasses import dataclass

from refimpl.order.conflicts import conflicts
from refimpl.order.flags import ancestors, has_flags, with_flag_edges
from refimpl.order.graph import Edge, EdgeKind, Graph, Step, build
from refimpl.order.report import Hazard
from refimpl.program import Program, ProgramError, Range


@dataclass(frozen=True)
class Link:
    """One edge of a happens-before path, with its reason in words."""

    before: Step
    after: Step
    kind: EdgeKind
    words: str


@dataclass(frozen=True)
class Explanation:
    """The order of two ops.

    Args:
        ordered: True when ``first`` happens before ``second``.
        first, second: op indices, in the order that holds; in issue order when none does.
        path: the edges from one to the other; empty when they are unordered.
        conflicts: hazards and bytes at stake between them.
        ancestor: the last step that is before both, when they are unordered.
    """

    ordered: bool
    first: int
    second: int
    path: tuple[Link, ...]
    conflicts: tuple[tuple[Hazard, Range], ...]
    ancestor: Step | None

    def __str__(self) -> str:
        if self.ordered:
            lines = [f"op {self.first} happens before op {self.second}:"]
            for number, link in enumerate(self.path, 1):
                lines += textwrap.wrap(link.words, 76, initial_indent=f"  {number}. ", subsequent_indent="     ")
            return "\n".join(lines)
        stake = "; ".join(f"{kind} on {bytes_}" for kind, bytes_ in self.conflicts) or "they share no byte"
        return f"op {self.first} and op {self.second} are unordered ({stake})"


def explain(program: Program, a: int, b: int, as_observed: bool = False) -> Explanation:
    """The happens-before path between two ops, or the bytes at stake when nothing orders them.

    Two ops that conflict are ordered when each pair of their steps that share bytes is: of a graph whose event covers
    one node, a writer of that node's bytes comes after it, whatever the other nodes do. Ops without a conflict are
    ordered when all of their steps that touch memory are, or all of them when none does.

    Args:
        a, b: 0-based op indices, in any order.

    Raises:
        ProgramError: an index outside the program.

    Example:
        >>> from refimpl.program import EventRecord, Launch, Stream, StreamWaitEvent
        >>> program = Program(
        ...     streams={"forward": Stream(), "schedule": Stream()},
        ...     ops=(
        ...         Launch(stream="forward", name="verify"), EventRecord(event="verify_done", stream="forward"),
        ...         StreamWaitEvent(event="verify_done", stream="schedule"), Launch(stream="schedule", name="gather"),
        ...     ),
        ... )
        >>> [str(link.kind) for link in explain(program, 0, 3).path]
        ['fifo', 'event', 'fifo']
    """
    for index in (a, b):
        if not 0 <= index < len(program.ops):
            raise ProgramError(
                f"there is no op {index}; the program has ops 0 to {len(program.ops) - 1}", case=program.id
            )
    graph = build(program, as_observed)
    if has_flags(graph):
        graph = with_flag_edges(graph, ancestors(graph))
    for first, second in ((min(a, b), max(a, b)), (max(a, b), min(a, b))):
        path = _path(graph, first, second)
        if path is not None:
            return Explanation(True, first, second, path, _conflicts(graph, first, second), None)
    first, second = min(a, b), max(a, b)
    return Explanation(
        False, first, second, (), _conflicts(graph, first, second), common_ancestor(graph, first, second)
    )


def common_ancestor(graph: Graph, a: int, b: int) -> Step | None:
    """The last step, in issue order, that comes before both ops."""
    both = _before(graph, _main_steps(graph, a)) & _before(graph, _main_steps(graph, b))
    both = {index for index in both if graph.steps[index].op not in (a, b)}
    return graph.steps[max(both)] if both else None


def _main_steps(graph: Graph, op: int) -> list[int]:
    """The steps of an op that touch memory, or all of them."""
    steps = [step for step in graph.steps if step.op == op]
    touching = [step.index for step in steps if step.reads or step.writes]
    return touching or [step.index for step in steps]


def _before(graph: Graph, steps: list[int]) -> set[int]:
    seen: set[int] = set()
    todo = list(steps)
    while todo:
        for edge in graph.into[todo.pop()]:
            if edge.before not in seen:
                seen.add(edge.before)
                todo.append(edge.before)
    return seen


def _path(graph: Graph, first: int, second: int) -> tuple[Link, ...] | None:
    """The shortest chain of edges from ``first`` to ``second``, when all of their steps that count are ordered."""
    pairs = [] if first == second else _pairs_at_stake(graph, first, second)
    if not pairs or any(source not in _before(graph, [target]) for source, target in pairs):
        return None
    chain = _shortest(graph, *max(pairs, key=lambda pair: (pair[0], -pair[1])))
    return tuple(Link(graph.steps[e.before], graph.steps[e.after], e.kind, _words(graph, e)) for e in chain)


def _pairs_at_stake(graph: Graph, first: int, second: int) -> list[tuple[int, int]]:
    """The pairs of steps that share bytes, one of them writing; when there is none, every pair of main steps."""
    pairs = [(a, b) for a in _main_steps(graph, first) for b in _main_steps(graph, second)]
    return [(a, b) for a, b in pairs if any(conflicts(graph.steps[a], graph.steps[b]))] or pairs


def _shortest(graph: Graph, source: int, target: int) -> list[Edge]:
    towards: dict[int, Edge | None] = {target: None}
    queue = deque([target])
    while queue and source not in towards:
        step = queue.popleft()
        for edge in graph.into[step]:
            if edge.before not in towards:
                towards[edge.before] = edge
                queue.append(edge.before)
    chain: list[Edge] = []
    link = towards[source]
    while link is not None:
        chain.append(link)
        link = towards[link.after]
    return chain


def _conflicts(graph: Graph, first: int, second: int) -> tuple[tuple[Hazard, Range], ...]:
    pairs = ((graph.steps[a], graph.steps[b]) for a in _main_steps(graph, first) for b in _main_steps(graph, second))
    return tuple(dict.fromkeys(found for a, b in pairs for found in conflicts(a, b)))


def _words(graph: Graph, edge: Edge) -> str:
    a, b = graph.steps[edge.before], graph.steps[edge.after]
    reason = {
        EdgeKind.FIFO: f"{b.lane} is first in, first out",
        EdgeKind.HOST: "the host goes on in program order",
        EdgeKind.SUBMIT: f"the host submits {b.name} after {a.name}",
        EdgeKind.EVENT: f"{b.lane} waits for the capture of {edge.via}",
        EdgeKind.STREAM: f"{b.lane} waits for what {edge.via} held at the call",
        EdgeKind.SYNCHRONIZE: f"the host blocks until {edge.via or a.name} has executed",
        EdgeKind.LEGACY: "the legacy stream waits for every blocking stream, and they for it",
        EdgeKind.GRAPH: f"the graph runs {b.name} after {a.name}",
        EdgeKind.AGENT: f"{edge.via} runs between its begin and its wait",
        EdgeKind.ALLOCATOR: f"the allocator reuses {edge.via or 'memory'} only then",
        EdgeKind.FLAG: f"{b.lane} waits for the value of {edge.via}",
    }[edge.kind]
    return f"{a.name} → {b.name}: {reason}"
