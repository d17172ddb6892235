"""Random stream programs over all ops, from a seed, and a minimiser for those that break a property."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from refimpl import program as p
from refimpl.program import Buffer, Mem, Op, Program, Range, Stream, StreamKind

BYTES = 4096
STREAMS = {
    "s": Stream(),
    "t": Stream(),
    "b": Stream(StreamKind.BLOCKING),
    "c": Stream(StreamKind.BLOCKING),
    "thread": Stream(StreamKind.PER_THREAD),
    "s1": Stream(device=1),
    "b1": Stream(StreamKind.BLOCKING, device=1),
}
BUFFERS = {
    "x": Buffer(BYTES),
    "y": Buffer(BYTES),
    "z": Buffer(BYTES, device=1),
    "managed": Buffer(BYTES, Mem.MANAGED),
    "pinned": Buffer(BYTES, Mem.PINNED),
    "pageable": Buffer(BYTES, Mem.PAGEABLE),
    "q0": Buffer(BYTES),
    "q1": Buffer(BYTES),
    "q2": Buffer(BYTES),
}
OWNERS = ("q0", "q1", "q2")
BLOCKS = ("block0", "block1")
HOST_VISIBLE = ("managed", "pinned", "pageable")
EVENTS = ("e", "f")
FLAGS = ("flag0", "flag1")
PIECES = ((0, 48, 1, 0), (0, 24, 1, 0), (24, 24, 1, 0), (0, 4, 3, 16), (4, 4, 3, 16), (0, 8, 2, 24), (20, 8, 1, 0))

DEVICE_ONLY = (
    "launch",
    "event_record",
    "stream_wait_event",
    "event_sync",
    "stream_sync",
    "device_sync",
    "stream_wait_stream",
)
WITH_FLAGS = ("stream_write_value", "stream_wait_value")
KINDS = tuple(name for name in p.OPS if name not in WITH_FLAGS)


def random_program(
    seed: int, kinds: tuple[str, ...] = KINDS, length: int = 16, streams: tuple[str, ...] = (*STREAMS, p.LEGACY)
) -> Program:
    """A program of up to ``length`` ops, of some of the kinds, so that every mixture comes up; launches most often."""
    rng = Random(seed)
    some = rng.sample(kinds, rng.randint(1, len(kinds)))
    few = tuple(rng.sample(streams, min(len(streams), rng.randint(2, 4))))
    make = _Maker(rng, few, tuple(rng.sample(tuple(BUFFERS), rng.randint(1, 4))))
    ops = [make.op("launch" if rng.random() < 0.3 else rng.choice(some)) for _ in range(rng.randint(3, length))]
    return Program(ops=tuple(ops), streams=STREAMS, buffers=BUFFERS, id=f"seed {seed}")


def thinned(program: Program, seed: int, keep: int = 2) -> Program:
    """The same ops, of which all but ``keep`` use bytes of their own: only the order of those few is in question."""
    touching = [k for k, op in enumerate(program.ops) if any(p.accesses(op))]
    kept = Random(seed).sample(touching, min(keep, len(touching)))
    ops = [
        op if k in kept else with_ranges(op, lambda r, k=k: r._replace(off=r.off + 64 * (k + 1)))
        for k, op in enumerate(program.ops)
    ]
    return replace(program, ops=tuple(ops))


def with_ranges(op: Op, change: Callable[[Range], Range]) -> Op:
    """The op with every range of its accesses changed."""
    match op:
        case p.GraphLaunch():
            return replace(op, nodes=tuple(with_node_ranges(node, change) for node in op.nodes))
        case p.Launch():
            return replace(op, reads=tuple(map(change, op.reads)), writes=tuple(map(change, op.writes)))
        case p.Memcpy():
            return replace(op, src=change(op.src), dst=change(op.dst))
        case p.Memset():
            return replace(op, dst=change(op.dst))
        case p.HostRead() | p.HostWrite() | p.HostAsyncBegin():
            return replace(op, range=change(op.range))
    return op


def with_node_ranges(node: p.Node, change: Callable[[Range], Range]) -> p.Node:
    """The node with every range changed."""
    return replace(node, reads=tuple(map(change, node.reads)), writes=tuple(map(change, node.writes)))


def minimised(program: Program, broken: Callable[[Program], bool]) -> Program:
    """The program without every op that is not needed to break the property."""
    ops = list(program.ops)
    k = 0
    while k < len(ops):
        shorter = replace(program, ops=(*ops[:k], *ops[k + 1 :]))
        if broken(shorter):
            ops, k = list(shorter.ops), 0
        else:
            k += 1
    return replace(program, ops=tuple(ops))


def assert_never(broken: Callable[[Program], bool], programs: list[Program]) -> None:
    """No program breaks the property; the message shows the smallest one found."""
    for program in programs:
        if broken(program):
            small = minimised(program, broken)
            raise AssertionError(f"{program.id} breaks it; in short:\n" + "\n".join(map(str, small.ops)))


class _Maker:
    """Makes one op after the other, with the few streams of one program."""

    def __init__(self, rng: Random, streams: tuple[str, ...], buffers: tuple[str, ...]) -> None:
        self.rng, self.streams, self.buffers = rng, streams, buffers

    def op(self, kind: str) -> Op:
        return getattr(self, kind)()  # type: ignore[no-any-return]

    def any(self, names: tuple[str, ...]) -> str:
        return self.rng.choice(names)

    def buffer(self, names: tuple[str, ...] = tuple(BUFFERS)) -> str:
        return self.any(tuple(name for name in self.buffers if name in names) or names)

    def range(self, names: tuple[str, ...] = tuple(BUFFERS)) -> Range:
        return Range(self.buffer(names), *self.rng.choice(PIECES))

    def some(self, names: tuple[str, ...] = tuple(BUFFERS)) -> tuple[Range, ...]:
        return tuple(self.range(names) for _ in range(self.rng.choice((0, 1, 1, 2))))

    def launch(self) -> Op:
        return p.Launch(stream=self.any(self.streams), reads=self.some(), writes=self.some())

    def memcpy(self) -> Op:
        piece = self.rng.choice(PIECES)
        src, dst = (Range(self.buffer(), *piece) for _ in "sd")
        return p.Memcpy(api=self.rng.choice(list(p.Api)), src=src, dst=dst, stream=self.any(self.streams))

    def memset(self) -> Op:
        return p.Memset(api=self.rng.choice(list(p.Api)), dst=self.range(), stream=self.any(self.streams))

    def event_record(self) -> Op:
        return p.EventRecord(event=self.any(EVENTS), stream=self.any(self.streams))

    def stream_wait_event(self) -> Op:
        return p.StreamWaitEvent(event=self.any(EVENTS), stream=self.any(self.streams))

    def stream_wait_stream(self) -> Op:
        return p.StreamWaitStream(stream=self.any(self.streams), on=self.any(self.streams))

    def event_sync(self) -> Op:
        return p.EventSync(event=self.any(EVENTS))

    def stream_sync(self) -> Op:
        return p.StreamSync(stream=self.any(self.streams))

    def device_sync(self) -> Op:
        return p.DeviceSync()

    def event_query_until_success(self) -> Op:
        return p.EventQuery(event=self.any(EVENTS))

    def stream_query_until_success(self) -> Op:
        return p.StreamQuery(stream=self.any(self.streams))

    def host_read(self) -> Op:
        return p.HostRead(range=self.range(HOST_VISIBLE))

    def host_write(self) -> Op:
        return p.HostWrite(range=self.range(HOST_VISIBLE))

    def host_work(self) -> Op:
        return p.HostWork()

    def host_async_begin(self) -> Op:
        return p.HostAsyncBegin(
            id=self.any(("send", "receive")), range=self.range(), access=self.rng.choice(list(p.Access))
        )

    def host_async_wait(self) -> Op:
        return p.HostAsyncWait(id=self.any(("send", "receive")))

    def graph_launch(self) -> Op:
        nodes: list[p.Node] = []
        for k in range(self.rng.randint(1, 4)):
            deps = tuple(node.name for node in nodes if self.rng.random() < 0.4)
            what = self.rng.choice(("kernel", "kernel", "record", "wait"))
            if what == "kernel":
                nodes.append(p.Node(name=f"n{k}", reads=self.some(), writes=self.some(), deps=deps))
            else:
                nodes.append(p.Node(name=f"n{k}", deps=deps, **{what: self.any(EVENTS)}))
        self.rng.shuffle(nodes)
        return p.GraphLaunch(stream=self.any(self.streams), nodes=tuple(nodes))

    def stream_write_value(self) -> Op:
        return p.StreamWriteValue(stream=self.any(self.streams), flag=self.any(FLAGS))

    def stream_wait_value(self) -> Op:
        return p.StreamWaitValue(stream=self.any(self.streams), flag=self.any(FLAGS))

    def alloc(self) -> Op:
        return p.Alloc(buf=self.buffer(("x", "y", "z", *HOST_VISIBLE)))

    def free(self) -> Op:
        return p.Free(buf=self.buffer(("x", "y", "z", *HOST_VISIBLE)))

    def tensor_alloc(self) -> Op:
        block = self.any(BLOCKS) if self.rng.random() < 0.8 else None
        return p.TensorAlloc(buf=self.buffer(OWNERS), block=block, stream=self.any(self.streams))

    def tensor_free(self) -> Op:
        return p.TensorFree(buf=self.buffer(OWNERS))

    def record_stream(self) -> Op:
        return p.RecordStream(buf=self.buffer(OWNERS), stream=self.any(self.streams))

    def set_device(self) -> Op:
        return p.SetDevice(device=self.rng.randint(0, 1))
