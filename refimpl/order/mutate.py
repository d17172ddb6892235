"""Mutations: a program without one of its fences, to see whether anything depended on it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from refimpl import program as p
from refimpl.program import GraphLaunch, HostWork, Node, Op, Program, ProgramError, label

WAITS = (
    p.StreamWaitEvent,
    p.StreamWaitStream,
    p.StreamWaitValue,
    p.EventSync,
    p.StreamSync,
    p.DeviceSync,
    p.EventQuery,
    p.StreamQuery,
    p.HostAsyncWait,
)
MARKS = (p.EventRecord, p.StreamWriteValue, p.RecordStream)


@dataclass(frozen=True)
class Fence:
    """One thing in a program that is there to order others.

    Args:
        op: index of the op.
        name: what it is.
        node: the graph's node that records or waits, or that depends on another.
        dep: the node that ``node`` depends on, where that dependency is the fence.
    """

    op: int
    name: str
    node: str | None = None
    dep: str | None = None

    def __str__(self) -> str:
        return f"op {self.op} {self.name}"


def fences_of(program: Program) -> tuple[Fence, ...]:
    """Every wait, record and synchronize of a program, in the order of issue: ops, nodes of graphs, and what their
    nodes depend on.

    Successful queries, waits for agents, flags and ``record_stream`` are among them; a copy that holds the host is not,
    since it cannot be left out without its copy.

    Example:
        >>> from refimpl.program import DeviceSync, Launch, Stream
        >>> program = Program(streams={"s": Stream()}, ops=(Launch(stream="s"), DeviceSync()))
        >>> [str(fence) for fence in fences_of(program)]
        ['op 1 device_sync']
    """
    return tuple(fence for index, op in enumerate(program.ops) for fence in _fences(index, op))


def _fences(index: int, op: Op) -> Iterator[Fence]:
    if isinstance(op, WAITS + MARKS):
        yield Fence(index, label(op))
    if isinstance(op, GraphLaunch):
        for node in op.nodes:
            where = f"{op.name}/{node.name}"
            if node.record is not None:
                yield Fence(index, f"{where} record({node.record})", node.name)
            if node.wait is not None:
                yield Fence(index, f"{where} wait({node.wait})", node.name)
            for dep in dict.fromkeys(node.deps):
                yield Fence(index, f"{where} after {dep}", node.name, dep)


def drop(program: Program, *fences: Fence) -> Program:
    """The program without these fences; every other op keeps its index.

    Host work of no length stands where an op was, and a node without an event where one had one. An event that is no
    longer recorded here keeps what it held before, so a wait on it is a wait on that.

    Raises:
        ProgramError: the program has no such fence.
    """
    known = set(fences_of(program))
    ops = list(program.ops)
    for fence in fences:
        if fence not in known:
            raise ProgramError(f"has no fence {fence}: take one of fences_of(program)", case=program.id)
        ops[fence.op] = _without(ops[fence.op], fence)
    return replace(program, ops=tuple(ops), expect=None, racing_ops=())


def _without(op: Op, fence: Fence) -> Op:
    if not isinstance(op, GraphLaunch):
        return HostWork(name=f"without {fence.name}", us=0.0, site=op.site, step=op.step)
    return replace(op, nodes=tuple(_node(node, fence) if node.name == fence.node else node for node in op.nodes))


def _node(node: Node, fence: Fence) -> Node:
    if fence.dep is None:
        return replace(node, record=None, wait=None)
    return replace(node, deps=tuple(dep for dep in node.deps if dep != fence.dep))
