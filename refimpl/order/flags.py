"""Flags and deadlock: a stream may wait for a value that a later call writes, so that some programs can never end.

Whether a program ends does not depend on the schedule: a flag once set stays set, and every other edge points to what
was issued before. So one
greedy run decides it.
"""

from refimpl.order.graph import Edge, EdgeKind, Graph
from refimpl.order.report import Deadlock
from refimpl.program import UserError

LIMIT = 20_000
"""Steps up to which a program with flags is judged: its ancestors are kept as sets of bits."""


def has_flags(graph: Graph) -> bool:
    """True when some step waits for a flag; only then can a program deadlock."""
    return any(step.flag is not None for step in graph.steps)


def executable(graph: Graph) -> list[int]:
    """The steps that a greedy run executes, in an order in which it may; all of them, unless the program deadlocks."""
    missing = [len(edges) for edges in graph.into]
    followers: list[list[int]] = [[] for _ in graph.steps]
    for edges in graph.into:
        for edge in edges:
            followers[edge.before].append(edge.after)
    waiting: dict[str, list[int]] = {}
    flags: set[str] = set()
    order: list[int] = []
    ready = [index for index, count in enumerate(missing) if count == 0]
    while ready:
        step = graph.steps[ready.pop()]
        if step.flag is not None and step.flag not in flags:
            waiting.setdefault(step.flag, []).append(step.index)
            continue
        order.append(step.index)
        if step.sets is not None and step.sets not in flags:
            flags.add(step.sets)
            ready += waiting.pop(step.sets, [])
        for follower in followers[step.index]:
            missing[follower] -= 1
            if missing[follower] == 0:
                ready.append(follower)
    return order


def deadlock(graph: Graph) -> Deadlock | None:
    """The ops at which lanes stand still for good, or None when the program ends."""
    if not has_flags(graph):
        return None
    done = set(executable(graph))
    if len(done) == len(graph.steps):
        return None
    heads = [s for s in graph.steps if s.index not in done and all(edge.before in done for edge in graph.into[s.index])]
    return Deadlock(tuple(sorted({step.op for step in heads})), "; ".join(_why(graph, head.index) for head in heads))


def ancestors(graph: Graph) -> list[int]:
    """For each step, the set of steps before it, as the bits of an integer; flags are resolved as far as they are
    certain.

    A wait that several writes may release comes after what all of them come after. Raises ``UserError`` beyond
    ``LIMIT`` steps.
    """
    if len(graph.steps) > LIMIT:
        raise UserError(
            f"a program with flags may have {LIMIT} steps, this one has {len(graph.steps)}: check it in parts"
        )
    writes: dict[str, list[int]] = {}
    for step in graph.steps:
        if step.sets is not None:
            writes.setdefault(step.sets, []).append(step.index)
    before = [0] * len(graph.steps)
    changed = True
    while changed:
        changed = False
        for step in graph.steps:
            known = before[step.index]
            for edge in graph.into[step.index]:
                known |= before[edge.before] | 1 << edge.before
            if step.flag is not None:
                known |= _released_after(before, writes.get(step.flag, []), step.index)
            if known != before[step.index]:
                before[step.index], changed = known, True
    return before


def with_flag_edges(graph: Graph, before: list[int]) -> Graph:
    """The graph with an edge from a flag's write to a wait wherever that write surely comes first, for explanations."""
    into = [list(edges) for edges in graph.into]
    for step in graph.steps:
        for other in graph.steps if step.flag is not None else ():
            if other.sets == step.flag and before[step.index] >> other.index & 1:
                into[step.index].append(Edge(other.index, step.index, EdgeKind.FLAG, step.flag or ""))
    return Graph(graph.steps, into)


def _released_after(before: list[int], writes: list[int], wait: int) -> int:
    """What surely comes before a wait: what every write that may release it comes after, that write included."""
    candidates = [write for write in writes if not before[write] >> wait & 1]
    if not candidates:
        return 0
    common = before[candidates[0]] | 1 << candidates[0]
    for write in candidates[1:]:
        common &= before[write] | 1 << write
    return common


def _why(graph: Graph, index: int) -> str:
    step = graph.steps[index]
    writes = [s for s in graph.steps if s.sets == step.flag]
    where = f"{step.lane} stands at op {step.op}, waiting for {step.flag}"
    if not writes:
        return f"{where}, which nothing writes"
    later = ", ".join(f"op {write.op} on {write.lane}" for write in writes)
    return f"{where}, whose write ({later}) comes only after it or after another lane that stands still"
