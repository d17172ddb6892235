"""The ordering rules as edges: a ``Program`` becomes a graph of steps, and an edge says "comes before, because …".

This is the statement of the rules that explanations, deadlocks and flags are read from. ``checker`` states the same
rules as clocks, for speed; the
tests hold the two equal.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from refimpl import program as p
from refimpl.order.copies import HostRule, copy_rule, fill_rule, runs_on
from refimpl.program import LEGACY, Op, Program, Range, StreamKind, label, topological, unclear_records


class EdgeKind(StrEnum):
    """Why one step comes before another."""

    FIFO = "fifo"
    HOST = "host"
    SUBMIT = "submit"
    EVENT = "event"
    STREAM = "stream"
    SYNCHRONIZE = "synchronize"
    LEGACY = "legacy"
    GRAPH = "graph"
    AGENT = "agent"
    ALLOCATOR = "allocator"
    FLAG = "flag"


@dataclass(frozen=True)
class Edge:
    """Step ``before`` comes before step ``after``; ``via`` names the event, flag or agent that makes it so."""

    before: int
    after: int
    kind: EdgeKind
    via: str = ""


@dataclass(frozen=True)
class Step:
    """One thing that executes: an op, or a node of a graph, or the host's or the device's half of an op that has two.

    Args:
        index: number of the step, in issue order.
        op: index of its op.
        lane: where it runs.
        name: what it is.
        reads, writes: its accesses, as (memory, range): successive owners of a block share one memory.
        flag: the flag it waits for.
        sets: the flag it sets.
    """

    index: int
    op: int
    lane: str
    name: str
    reads: tuple[tuple[str, Range], ...] = ()
    writes: tuple[tuple[str, Range], ...] = ()
    flag: str | None = None
    sets: str | None = None


@dataclass
class Graph:
    """Steps in issue order with the edges into each; every edge leads forward, but for those of flags."""

    steps: list[Step] = field(default_factory=list)
    into: list[list[Edge]] = field(default_factory=list)

    def add(self, op: int, lane: str, name: str, edges: Iterable[tuple[int, EdgeKind, str]], **more: object) -> int:
        """A new step with the edges that lead to it; returns its index."""
        index = len(self.steps)
        self.steps.append(Step(index, op, lane, name, **more))  # type: ignore[arg-type]
        self.into.append([Edge(before, index, kind, via) for before, kind, via in dict.fromkeys(edges)])
        return index


def build(program: Program, as_observed: bool = False) -> Graph:
    """The graph of a program under NVIDIA's promises, or under what current drivers are observed to do."""
    builder = _Builder(program, as_observed)
    for index, op in enumerate(program.ops):
        builder.apply(index, op)
    return builder.graph


def blocks_before(program: Program) -> dict[str, str]:
    """Blocks of the buffers that were handed out before the program begins: it frees them and never allocates them."""
    first: dict[str, p.TensorAlloc | p.TensorFree] = {}
    for op in program.ops:
        if isinstance(op, p.TensorAlloc | p.TensorFree):
            first.setdefault(op.buf, op)
    return {buf: op.block for buf, op in first.items() if isinstance(op, p.TensorFree) and op.block is not None}


class _Builder:
    """Walks a program in issue order; ``tails`` holds for each stream the steps that its next step comes after."""

    def __init__(self, program: Program, as_observed: bool) -> None:
        self.program, self.as_observed = program, as_observed
        self.graph = Graph()
        self.device = 0
        self.host: int | None = None
        self.tails: dict[str, tuple[int, ...]] = dict.fromkeys(program.streams, ())
        self.captures: dict[str, tuple[int, ...]] = {}
        self.agents: dict[str, list[int]] = {}
        self.block_of: dict[str, str] = blocks_before(program)
        self.home: dict[str, str | None] = {}
        self.users: dict[str, list[tuple[str, int]]] = {}
        self.pending: dict[str, list[int]] = {}

    # ── pieces ──

    def key(self, stream: str, device: int | None = None) -> str:
        """A stream's tails go by its name; each device has a legacy stream of its own."""
        return f"{LEGACY}@{self.device if device is None else device}" if stream == LEGACY else stream

    def blocking(self, device: int) -> list[str]:
        return [
            name
            for name, s in self.program.streams.items()
            if s.kind is not StreamKind.NONBLOCKING and s.device == device
        ]

    def of_device(self, device: int) -> list[str]:
        names = [name for name, s in self.program.streams.items() if s.device == device]
        return [*names, f"{LEGACY}@{device}"]

    def before(self, stream: str, device: int | None = None) -> list[tuple[int, EdgeKind, str]]:
        """Edges into the next step of a stream: its own order, the host's call, and on legacy all blocking streams."""
        device = self.device if device is None else device
        edges = [(tail, EdgeKind.FIFO, "") for tail in self.tails.get(self.key(stream, device), ())]
        if stream == LEGACY:
            edges += [(tail, EdgeKind.LEGACY, "") for name in self.blocking(device) for tail in self.tails[name]]
        if self.host is not None:
            edges.append((self.host, EdgeKind.SUBMIT, ""))
        return edges

    def queue(
        self, op: int, stream: str, name: str, more_edges: Iterable[tuple[int, EdgeKind, str]] = (), **more: object
    ) -> int:
        """A step on a stream; an action of the legacy stream becomes the tail of every blocking one."""
        step = self.graph.add(op, stream, name, [*self.before(stream), *more_edges], **more)
        self.advance(stream, (step,))
        return step

    def advance(self, stream: str, tails: tuple[int, ...]) -> None:
        self.tails[self.key(stream)] = tails
        if stream == LEGACY:
            for name in self.blocking(self.device):
                self.tails[name] = tails

    def on_host(self, op: int, name: str, edges: Iterable[tuple[int, EdgeKind, str]] = (), **more: object) -> int:
        own = [] if self.host is None else [(self.host, EdgeKind.HOST, "")]
        self.host = self.graph.add(op, "host", name, [*own, *edges], **more)
        return self.host

    def place(self, ranges: Iterable[Range]) -> tuple[tuple[str, Range], ...]:
        return tuple((self.memory(r.buf), r) for r in ranges)

    def memory(self, buf: str) -> str:
        """Where a buffer's bytes are: in its allocator's block, or in itself."""
        block = self.block_of.get(buf)
        return f"buffer {buf}" if block is None else f"block {block}"

    def tail_edges(self, stream: str, kind: EdgeKind, via: str) -> list[tuple[int, EdgeKind, str]]:
        """Edges from all that is now queued on a stream; for legacy that is what its blocking streams hold too."""
        tails = list(self.tails.get(self.key(stream), ()))
        if stream == LEGACY:
            tails += [tail for name in self.blocking(self.device) for tail in self.tails[name]]
        return [(tail, kind, via) for tail in dict.fromkeys(tails)]

    # ── ops ──

    def apply(self, i: int, op: Op) -> None:
        name = label(op)
        match op:
            case p.Launch():
                self.queue(i, op.stream, name, reads=self.place(op.reads), writes=self.place(op.writes))
            case p.Memcpy():
                self.copy(i, op, name)
            case p.Memset():
                step = self.queue(i, runs_on(op), name, writes=self.place((op.dst,)))
                if fill_rule(op, self.program.buffers, self.as_observed) is HostRule.BLOCKS:
                    self.on_host(i, f"return of {name}", [(step, EdgeKind.SYNCHRONIZE, "")])
            case p.EventRecord():
                self.captures[op.event] = (self.queue(i, op.stream, name),)
            case p.StreamWaitEvent():
                self.queue(i, op.stream, name, [(c, EdgeKind.EVENT, op.event) for c in self.captures.get(op.event, ())])
            case p.StreamWaitStream():
                mark = self.queue(i, op.on, f"record of wait_stream({op.on})")
                self.queue(i, op.stream, name, [(mark, EdgeKind.STREAM, op.on)])
            case p.EventSync() | p.EventQuery():
                self.on_host(i, name, [(c, EdgeKind.SYNCHRONIZE, op.event) for c in self.captures.get(op.event, ())])
            case p.StreamSync() | p.StreamQuery():
                self.on_host(i, name, self.tail_edges(op.stream, EdgeKind.SYNCHRONIZE, op.stream))
            case p.DeviceSync():
                self.on_host(
                    i,
                    name,
                    [
                        (t, EdgeKind.SYNCHRONIZE, key)
                        for key in self.of_device(self.device)
                        for t in self.tails.get(key, ())
                    ],
                )
            case p.HostRead():
                self.on_host(i, name, reads=self.place((op.range,)))
            case p.HostWrite():
                self.on_host(i, name, writes=self.place((op.range,)))
            case p.HostWork():
                self.on_host(i, name)
            case p.HostAsyncBegin():
                self.begin(i, op)
            case p.HostAsyncWait():
                self.on_host(i, name, [(agent, EdgeKind.AGENT, op.id) for agent in self.agents.pop(op.id, [])])
            case p.GraphLaunch():
                self.launch_graph(i, op)
            case p.StreamWriteValue():
                self.queue(i, op.stream, name, sets=op.flag)
            case p.StreamWaitValue():
                self.queue(i, op.stream, name, flag=op.flag)
            case p.SetDevice():
                self.device = op.device
            case p.Alloc():
                self.alloc(i, op, name)
            case p.TensorAlloc() | p.TensorFree() | p.RecordStream():
                self.cache(i, op, name)

    def copy(self, i: int, op: p.Memcpy, name: str) -> None:
        rule, stream = copy_rule(op, self.program.buffers, self.as_observed), runs_on(op)
        if rule is HostRule.STAGES:
            self.on_host(
                i,
                f"staging of {name}",
                self.tail_edges(stream, EdgeKind.SYNCHRONIZE, stream),
                reads=self.place((op.src,)),
            )
            self.queue(i, stream, name, writes=self.place((op.dst,)))
            return
        step = self.queue(i, stream, name, reads=self.place((op.src,)), writes=self.place((op.dst,)))
        if rule is HostRule.BLOCKS:
            self.on_host(i, f"return of {name}", [(step, EdgeKind.SYNCHRONIZE, "")])

    def begin(self, i: int, op: p.HostAsyncBegin) -> None:
        start = self.on_host(i, label(op))
        reads, writes = p.accesses(op)
        step = self.graph.add(
            i,
            f"agent {op.id}",
            op.id,
            [(start, EdgeKind.AGENT, op.id)],
            reads=self.place(reads),
            writes=self.place(writes),
        )
        self.agents.setdefault(op.id, []).append(step)

    def launch_graph(self, i: int, op: p.GraphLaunch) -> None:
        start = self.queue(i, op.stream, op.name)
        steps: dict[str, int] = {}
        sinks = {start}
        unclear = unclear_records(op.nodes)
        armed = dict(self.captures)  # a wait node binds at the launch, whatever the order in which the nodes are listed
        for node in topological(op.nodes):
            edges = [(steps[dep], EdgeKind.GRAPH, "") for dep in node.deps] or [(start, EdgeKind.GRAPH, "")]
            if node.wait is not None:
                edges += [(c, EdgeKind.EVENT, node.wait) for c in armed.get(node.wait, ())]
            step = self.graph.add(
                i,
                op.stream,
                node.name if node.name == op.name else f"{op.name}/{node.name}",
                edges,
                reads=self.place(node.reads),
                writes=self.place(node.writes),
            )
            steps[node.name] = step
            sinks = (sinks - {edge[0] for edge in edges}) | {step}
            if node.record is not None:
                self.captures[node.record] = (start,) if node.record in unclear else (step,)
        self.advance(op.stream, tuple(sorted(sinks)))

    def alloc(self, i: int, op: p.Alloc, name: str) -> None:
        buffer = self.program.buffers[op.buf]
        if not self.as_observed or buffer.mem is p.Mem.PAGEABLE:
            return
        device = self.device if buffer.mem is p.Mem.PINNED else buffer.device
        keys = self.of_device(device)
        edges = [(tail, EdgeKind.ALLOCATOR, "") for key in keys for tail in self.tails.get(key, ())]
        step = self.graph.add(i, "driver", name, edges)
        for key in keys:
            self.tails[key] = (step,)

    def cache(self, i: int, op: p.TensorAlloc | p.TensorFree | p.RecordStream, name: str) -> None:
        match op:
            case p.RecordStream():
                if self.home.get(op.buf) != self.key(op.stream):
                    self.users.setdefault(op.buf, []).append((op.stream, self.device))
            case p.TensorFree():
                block = self.block_of.get(op.buf)
                for stream, device in self.users.pop(op.buf, []):
                    if block is not None:
                        # No action of the stream: nothing promises that blocking streams await a mark on legacy.
                        mark = self.graph.add(i, stream, f"allocator's mark on {stream}", self.before(stream, device))
                        self.pending.setdefault(block, []).append(mark)
            case p.TensorAlloc():
                self.home[op.buf] = None if op.stream is None else self.key(op.stream)
                if op.block is not None:
                    marks = self.pending.pop(op.block, [])
                    if marks:
                        self.on_host(i, name, [(mark, EdgeKind.ALLOCATOR, op.block) for mark in marks])
                    self.block_of[op.buf] = op.block
                    self.users.pop(op.buf, None)
