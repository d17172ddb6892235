"""``Program``: what each lane did, in the order in which the host issued it. Everything else in the project is a
function of one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heappop, heappush
from itertools import combinations
from types import MappingProxyType

from refimpl.program import ops as o
from refimpl.program.errors import ProgramError
from refimpl.program.ops import LEGACY, Node, Op, accesses
from refimpl.program.ranges import Range


class StreamKind(StrEnum):
    """How a stream relates to the legacy default stream: blocking ones wait for it and it waits for them;
    ``per_thread`` acts as blocking."""

    NONBLOCKING = "nonblocking"
    BLOCKING = "blocking"
    PER_THREAD = "per_thread"


class Mem(StrEnum):
    """Where a buffer lives."""

    DEVICE = "device"
    MANAGED = "managed"
    PINNED = "pinned"
    PAGEABLE = "pageable"


class Verdict(StrEnum):
    """What can be said of a program's order."""

    OK = "ok"
    RACE = "race"
    DEADLOCK = "deadlock"


@dataclass(frozen=True)
class Stream:
    """An in-order queue of device work. PyTorch's streams are ``nonblocking``."""

    kind: StreamKind = StreamKind.NONBLOCKING
    device: int = 0
    priority: int = 0


@dataclass(frozen=True)
class Buffer:
    """A run of memory that ops touch by byte ranges."""

    bytes: int
    mem: Mem = Mem.DEVICE
    device: int = 0


@dataclass(frozen=True)
class Program:
    """A stream program: streams, buffers and ops in issue order, checked at construction.

    Args:
        ops: what the host issued, in order.
        streams: by name; ``legacy`` always exists and is not listed.
        buffers: by name.
        id, suite, source, words: what the program is, where it comes from, what it shows.
        expect: the known verdict, when there is one.
        disputed: True when NVIDIA's pages or versions differ on the verdict.
        racing_ops: pairs of op indices, in issue order, that race.

    Raises:
        ProgramError: an unknown stream or buffer, a range outside its buffer, a graph that is no graph.

    Example:
        >>> program = Program(
        ...     streams={"forward": Stream(), "schedule": Stream()},
        ...     buffers={"lens": Buffer(64)},
        ...     ops=(
        ...         o.Launch(stream="forward", name="verify", writes=(Range("lens", 0, 64),)),
        ...         o.Launch(stream="schedule", name="gather", reads=(Range("lens", 0, 64),)),
        ...     ),
        ... )
        >>> program.lanes
        ('host', 'schedule', 'forward')
    """

    ops: tuple[Op, ...]
    streams: Mapping[str, Stream] = field(default_factory=dict)
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    id: str = "program"
    suite: str = ""
    source: str = ""
    words: str = ""
    expect: Verdict | None = None
    disputed: bool = False
    racing_ops: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "streams", MappingProxyType(dict(self.streams)))
        object.__setattr__(self, "buffers", MappingProxyType(dict(self.buffers)))
        for name in self.streams:
            if name in ("host", "driver") or name.startswith(("agent ", LEGACY)):
                why = f"a stream may not be called {name!r}: that name belongs to another lane, so choose another"
                raise ProgramError(why, case=self.id, field="streams")
        inside: set[Range] = set()
        for index, op in enumerate(self.ops):
            try:
                self._check(op, inside)
            except ProgramError as error:
                raise error.at(case=self.id, op=index) from None
        for pair in self.racing_ops:
            if not all(0 <= index < len(self.ops) for index in pair):
                raise ProgramError(
                    f"{list(pair)} names an op that does not exist (the last is {len(self.ops) - 1})",
                    case=self.id,
                    field="racing_ops",
                )

    @property
    def lanes(self) -> tuple[str, ...]:
        """Lanes as drawn, top to bottom: host, schedule, plan, forward, copy, other streams, legacy if used, agents."""
        known = [name for name in ("schedule", "plan", "forward", "copy") if name in self.streams]
        others = [name for name in self.streams if name not in known]
        legacy = [LEGACY] if any(stream == LEGACY for op in self.ops for stream in streams_of(op)) else []
        agents = dict.fromkeys(f"agent {op.id}" for op in self.ops if isinstance(op, o.HostAsyncBegin))
        return ("host", *known, *others, *legacy, *agents)

    def _check(self, op: Op, inside: set[Range]) -> None:
        """One op; ``inside`` holds the ranges that were found to lie in their buffers, since programs repeat them."""
        for field_name in ("stream", "on"):
            name = getattr(op, field_name, None)
            if name is not None and name != LEGACY and name not in self.streams:
                known = ", ".join([*self.streams, LEGACY])
                raise ProgramError(f"unknown stream {name!r}; this program has {known}", field=field_name)
        for field_name, r in _ranges(op):
            if r not in inside:
                try:
                    self._check_range(r)
                except ProgramError as error:
                    raise error.at(field=field_name) from None
                inside.add(r)
        buf = getattr(op, "buf", None)
        if buf is not None and buf not in self.buffers:
            raise ProgramError(self._unknown_buffer(buf), field="buf")
        if isinstance(op, o.GraphLaunch):
            topological(op.nodes)

    def _unknown_buffer(self, name: str) -> str:
        return f"unknown buffer {name!r}; this program has {', '.join(self.buffers) or 'none'}"

    def _check_range(self, r: Range) -> None:
        if r.buf not in self.buffers:
            raise ProgramError(self._unknown_buffer(r.buf))
        size = self.buffers[r.buf].bytes
        if r.off < 0 or r.len < 1 or r.rows < 1 or r.stride < 0:
            raise ProgramError(f"range {r} needs off >= 0, len >= 1, rows >= 1 and stride >= 0")
        if r.end > size:
            raise ProgramError(f"range {r} ends at byte {r.end}, outside buffer {r.buf!r} of {size} bytes")


def _ranges(op: Op) -> Iterator[tuple[str, Range]]:
    """The ranges of an op, each with the field that holds it."""
    match op:
        case o.Launch(reads=reads, writes=writes):
            yield from (("reads", r) for r in reads)
            yield from (("writes", r) for r in writes)
        case o.GraphLaunch():
            yield from (("nodes", r) for ranges in accesses(op) for r in ranges)
        case o.Memcpy(src=src, dst=dst):
            yield from (("src", src), ("dst", dst))
        case o.Memset(dst=dst):
            yield "dst", dst
        case o.HostRead(range=r) | o.HostWrite(range=r) | o.HostAsyncBegin(range=r):
            yield "range", r


def streams_of(op: Op) -> Iterator[str]:
    """The names of the streams that an op speaks of.

    Example:
        >>> list(streams_of(o.StreamWaitStream(stream="forward", on="schedule")))
        ['forward', 'schedule']
    """
    for field_name in ("stream", "on"):
        name = getattr(op, field_name, None)
        if name is not None:
            yield name


def topological(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes of a graph with every node after its ``deps``, in the given order where that allows it.

    Raises:
        ProgramError: a name that is used twice, an unknown dependency, a cycle.
    """
    index = {node.name: k for k, node in enumerate(nodes)}
    if len(index) < len(nodes):
        raise ProgramError("two nodes of the graph have the same name", field="nodes")
    followers: list[list[int]] = [[] for _ in nodes]
    missing = [len(set(node.deps)) for node in nodes]
    for k, node in enumerate(nodes):
        if (node.record is not None) + (node.wait is not None) + bool(node.reads or node.writes) > 1:
            why = f"node {node.name!r} is a kernel, a record or a wait: one of the three, so split it"
            raise ProgramError(why, field="nodes")
        for dep in set(node.deps):
            if dep not in index:
                raise ProgramError(
                    f"node {node.name!r} depends on {dep!r}, which the graph does not have", field="deps"
                )
            followers[index[dep]].append(k)
    ready = [k for k, count in enumerate(missing) if count == 0]
    order: list[Node] = []
    while ready:
        k = heappop(ready)
        order.append(nodes[k])
        for follower in followers[k]:
            missing[follower] -= 1
            if missing[follower] == 0:
                heappush(ready, follower)
    if len(order) < len(nodes):
        stuck = [node.name for node, count in zip(nodes, missing, strict=True) if count]
        raise ProgramError(f"the nodes {', '.join(stuck[:5])} depend on each other in a circle", field="deps")
    return tuple(order)


def unclear_records(nodes: tuple[Node, ...]) -> frozenset[str | None]:
    """Events that two nodes of a graph record and nothing orders: either record may be the last.

    Whoever waits for such an event can count only on what came before the graph.
    """
    by_event: dict[str, list[Node]] = {}
    for node in nodes:
        if node.record is not None:
            by_event.setdefault(node.record, []).append(node)
    if all(len(recording) == 1 for recording in by_event.values()):
        return frozenset()
    before: dict[str, set[str]] = {}
    for node in topological(nodes):
        before[node.name] = set(node.deps).union(*(before[dep] for dep in node.deps))
    return frozenset(
        event
        for event, recording in by_event.items()
        if any(a.name not in before[b.name] and b.name not in before[a.name] for a, b in combinations(recording, 2))
    )
