"""What refimpl says of a program's order, and where the component says something else: one line for each difference."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from refimpl.order import Graph, deadlock
from refimpl.order.conflicts import conflicts
from refimpl.order.flags import ancestors, executable, has_flags
from refimpl.program import Program
from refimpl.program import ops as o

Said = dict[str, Any]


class Order:
    """The steps of a graph by the labels that both sides know, and who comes before whom."""

    def __init__(self, graph: Graph, program: Program) -> None:
        self.graph = graph
        self.runs = set(executable(graph))
        self.before_bits = ancestors(graph)
        self.label = _labels(graph, program)
        self.step = {label: index for index, label in self.label.items()}

    def before(self, a: str, b: str) -> bool:
        """True when the step of label ``a`` comes before that of ``b``."""
        return bool(self.before_bits[self.step[b]] >> self.step[a] & 1)


def _labels(graph: Graph, program: Program) -> dict[int, str]:
    found: dict[int, str] = {}
    nodes: dict[int, int] = {}
    last = -1
    for step in graph.steps:
        op = program.ops[step.op]
        match op:
            case o.GraphLaunch():
                k = nodes.get(step.op, -1)
                nodes[step.op] = k + 1
                found[step.index] = f"{step.op} begin" if k < 0 else f"{step.op} node {k}"
            case o.HostAsyncBegin():
                if step.lane != "host":
                    found[step.index] = f"{step.op} agent"
            case o.TensorFree():
                pass
            case o.StreamWaitStream() if last != step.op:
                found[step.index] = f"{step.op} mark"
            case _:
                found[step.index] = f"{step.op} {'host' if step.lane == 'host' else 'device'}"
        last = step.op
    return found


def stuck_differ(said: Said, graph: Graph) -> Iterator[str]:
    """Ops that never run."""
    done = set(executable(graph))
    stuck = {step.op for step in graph.steps if step.index not in done}
    if set(said["stuck"]) != stuck:
        yield f"stuck: {sorted(said['stuck'])} are {sorted(stuck)}"
    found = deadlock(graph) if has_flags(graph) else None
    heads = set(found.ops) if found else set()
    if not set(said["heads"]) <= heads:
        yield f"heads: {sorted(set(said['heads']))} are {sorted(heads)}"


def order_differs(said: Said, order: Order) -> Iterator[str]:
    """Who comes before whom: the whole relation."""
    names = [name for name in said["name"] if name]
    if set(names) != set(order.step) or len(names) != len(set(names)):
        yield f"ops: {set(names) ^ set(order.step)}"
        return
    for name, before in zip(said["name"], said["before"], strict=True):
        if name is not None:
            there = {label for label in order.step if label != name and order.before(label, name)}
            if set(before) != there:
                yield f"before {name}: {sorted(set(before) ^ there)}"


def answers_differ(said: Said, order: Order) -> Iterator[str]:
    """Some questions for the order of two ops, and the path of each answer edge by edge."""
    lane = {label: order.graph.steps[index].lane for label, index in order.step.items()}
    for x in said["answers"]:
        a, b, path = x["a"], x["b"], [x["a"], *x["path"]]
        if x["ordered"] != order.before(a, b) or (not x["ordered"] and order.before(b, a)):
            yield f"answer: {a} before {b} is not {x['ordered']}"
        if not x["ok"] or x["lengths"]:
            yield f"answer: the path from {a} to {b} is broken or not the shortest"
        if not all(order.before(p, q) for p, q in pairwise(path)):
            yield f"answer: {path} is no path"
        if x["known"] is not None and (lane[x["known"]] != lane[a] or not order.before(x["known"], b)):
            yield f"answer: {b} does not come after {x['known']}"


def races_differ(said: Said, order: Order) -> Iterator[str]:
    """All pairs that race with their bytes, and of those the nearest, which pictures show."""
    steps = [order.graph.steps[index] for index in sorted(order.runs)]
    there: dict[tuple[str, str], list[Any]] = {}
    for k, b in enumerate(steps):
        for a in steps[:k]:
            before = order.before_bits
            if before[b.index] >> a.index & 1 or before[a.index] >> b.index & 1:
                continue
            found = [[str(kind), r.buf, r.off, r.len] for kind, r in conflicts(a, b)]
            if found:
                there[order.label[a.index], order.label[b.index]] = found
    name = said["name"]
    here = {(name[a], name[b]): what for a, b, *what in said["all"]}
    if here.keys() != there.keys():
        yield f"races: {sorted(here.keys() ^ there.keys())}"
    for pair, what in here.items():
        if pair in there and what[:1] + what[2:] not in [w[:1] + w[2:] for w in there[pair]]:
            yield f"races: {pair} {what} is none of {there[pair]}"
    near = [((name[a], name[b]), what) for a, b, *what in said["near"]]
    if not all(pair in there and what[:1] + what[2:] in [w[:1] + w[2:] for w in there[pair]] for pair, what in near):
        yield f"races: of {near} some are none of {there}"
    if {b for _, b in there} != {b for (_, b), _ in near}:
        yield f"races: some that hit {({b for _, b in there}) ^ {b for (_, b), _ in near}} are missing"
