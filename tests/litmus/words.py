"""Short words for short programs: one world of streams and buffers, one function per call."""

from refimpl import program as p
from refimpl.order import Race, Report, check
from refimpl.program import Api, Buffer, CopyKind, Mem, Node, Op, Program, Range, Stream, StreamKind, Verdict

STREAMS = {
    "s": Stream(),
    "t": Stream(),
    "u": Stream(),
    "b": Stream(StreamKind.BLOCKING),
    "c": Stream(StreamKind.BLOCKING),
    "thread": Stream(StreamKind.PER_THREAD),
    "s1": Stream(device=1),
    "b1": Stream(StreamKind.BLOCKING, device=1),
}
BUFFERS = {
    "x": Buffer(64),
    "y": Buffer(64),
    "on1": Buffer(64, device=1),
    "managed": Buffer(64, Mem.MANAGED),
    "pinned": Buffer(64, Mem.PINNED),
    "pageable": Buffer(64, Mem.PAGEABLE),
    "other": Buffer(64, Mem.PAGEABLE),
    "old": Buffer(64),
    "new": Buffer(64),
    "newest": Buffer(64),
}
OK, RACE, DEADLOCK = Verdict.OK, Verdict.RACE, Verdict.DEADLOCK


def whole(buf: str) -> Range:
    return Range(buf, 0, 64)


def program(*ops: Op) -> Program:
    return Program(ops=ops, streams=STREAMS, buffers=BUFFERS, id="litmus")


def report(*ops: Op, as_observed: bool = False) -> Report:
    return check(program(*ops), as_observed)


def verdict(*ops: Op, as_observed: bool = False) -> Verdict:
    return report(*ops, as_observed=as_observed).verdict


def only_race(*ops: Op) -> Race:
    (race,) = report(*ops).races
    return race


def lints(*ops: Op) -> list[tuple[str, int]]:
    return [(lint.rule, lint.op) for lint in report(*ops).lints]


def write(stream: str, where: str | Range = "x") -> Op:
    return p.Launch(stream=stream, name="write", writes=(where if isinstance(where, Range) else whole(where),))


def read(stream: str, where: str | Range = "x") -> Op:
    return p.Launch(stream=stream, name="read", reads=(where if isinstance(where, Range) else whole(where),))


def work(stream: str) -> Op:
    return p.Launch(stream=stream, name="work")


def record(event: str, stream: str) -> Op:
    return p.EventRecord(event=event, stream=stream)


def wait(event: str, stream: str) -> Op:
    return p.StreamWaitEvent(event=event, stream=stream)


def wait_stream(stream: str, on: str) -> Op:
    return p.StreamWaitStream(stream=stream, on=on)


def synchronize(event: str) -> Op:
    return p.EventSync(event=event)


def stream_synchronize(stream: str) -> Op:
    return p.StreamSync(stream=stream)


def device_synchronize() -> Op:
    return p.DeviceSync()


def set_device(device: int) -> Op:
    return p.SetDevice(device=device)


def host_read(buf: str) -> Op:
    return p.HostRead(range=whole(buf))


def host_write(buf: str) -> Op:
    return p.HostWrite(range=whole(buf))


def copy(src: str, dst: str, stream: str = "legacy", *, api: Api = Api.ASYNC, kind: CopyKind = CopyKind.DEFAULT) -> Op:
    return p.Memcpy(src=whole(src), dst=whole(dst), api=api, kind=kind, stream=stream)


def copy_now(src: str, dst: str, kind: CopyKind = CopyKind.DEFAULT) -> Op:
    """``cudaMemcpy``: the call whose name says that it is synchronous."""
    return copy(src, dst, api=Api.SYNC, kind=kind)


def fill(buf: str, stream: str) -> Op:
    return p.Memset(dst=whole(buf), api=Api.ASYNC, stream=stream)


def fill_now(buf: str) -> Op:
    return p.Memset(dst=whole(buf), api=Api.SYNC)


def begin(agent: str, buf: str, access: str) -> Op:
    return p.HostAsyncBegin(id=agent, range=whole(buf), access=p.Access(access))


def end(agent: str) -> Op:
    return p.HostAsyncWait(id=agent)


def graph(stream: str, *nodes: Node) -> Op:
    return p.GraphLaunch(stream=stream, nodes=nodes)


def node(name: str, *deps: str, reads: str | None = None, writes: str | None = None, **event: str) -> Node:
    return Node(
        name=name,
        deps=deps,
        reads=(whole(reads),) if reads else (),
        writes=(whole(writes),) if writes else (),
        **event,
    )


def set_flag(stream: str, flag: str = "flag") -> Op:
    return p.StreamWriteValue(stream=stream, flag=flag)


def wait_flag(stream: str, flag: str = "flag") -> Op:
    return p.StreamWaitValue(stream=stream, flag=flag)


def alloc(buf: str) -> Op:
    return p.Alloc(buf=buf)


def take(buf: str, block: str | None = "block", stream: str = "s") -> Op:
    """The caching allocator hands out a tensor."""
    return p.TensorAlloc(buf=buf, block=block, stream=stream)


def give(buf: str, stream: str = "s") -> Op:
    """The tensor is freed."""
    return p.TensorFree(buf=buf, stream=stream)


def record_stream(buf: str, stream: str) -> Op:
    return p.RecordStream(buf=buf, stream=stream)
