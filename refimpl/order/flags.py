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
    """For each step, the set of steps before it in every execution, as the bits of an integer.

    A wait that several writes may release comes after what all of them come after. Two waits may release each other's
    writers in turn, so the sets start full and shrink to the largest solution: growing from nothing would lose what
    every way into such a circle has in common. Raises ``UserError`` beyond ``LIMIT`` steps.
    """
    if len(graph.steps) > LIMIT:
        raise UserError(
            f"a program with flags may have {LIMIT} steps, this one has {len(graph.steps)}: check it in parts"
        )
    order = executable(graph)
    before = [0] * len(graph.steps)
    writes: dict[str, list[int]] = {}
    for index in order:
        before[index] = (1 << len(graph.steps)) - 1
        sets = graph.steps[index].sets
        if sets is not None:
            writes.setdefault(sets, []).append(index)
    changed = True
    while changed:
        changed = False
        for index in order:
            flag = graph.steps[index].flag
            known = _after_all(before, graph.into[index]) | (0 if flag is None else _after_any(before, writes[flag]))
            if known != before[index]:
                before[index], changed = known, True
    for index in sorted(set(range(len(before))) - set(order)):
        before[index] = _after_all(before, graph.into[index])
    return before


def with_flag_edges(graph: Graph, before: list[int]) -> Graph:
    """The graph with edges into each wait for a flag from the last steps that surely come before it, for
    explanations: the write, or what several writes have in common."""
    into = [list(edges) for edges in graph.into]
    runs = [graph.steps[index] for index in executable(graph)]
    for wait in runs:
        if wait.flag is not None:
            common = _after_any(before, [step.index for step in runs if step.sets == wait.flag])
            known = [index for index in range(len(into)) if common >> index & 1]
            last = [index for index in known if not any(before[other] >> index & 1 for other in known)]
            into[wait.index] += [Edge(index, wait.index, EdgeKind.FLAG, wait.flag) for index in last]
    return Graph(graph.steps, into)


def _after_all(before: list[int], edges: list[Edge]) -> int:
    known = 0
    for edge in edges:
        known |= before[edge.before] | 1 << edge.before
    return known


def _after_any(before: list[int], writes: list[int]) -> int:
    """What surely comes before a wait: what every write that may release it comes after, that write included."""
    common = -1
    for write in writes:
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
