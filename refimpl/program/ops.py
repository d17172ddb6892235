"""The ops of a stream program: frozen dataclasses, one per op of the JSON format, in the words of CUDA.

Field names are the JSON's. Every op may carry a duration (``us``), a call site (``site``) and three fields of our own
that never change a
verdict: ``step`` (loop iteration), ``param`` (the name of the duration parameter that ``us`` comes from) and ``value``
    (what its write leaves
behind, in words, for pictures).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from refimpl.program.errors import ProgramError
from refimpl.program.ranges import Range

LEGACY = "legacy"
"""Name of the legacy default stream of the current device; every program has it."""


LONGEST_US = 1e15
"""The longest duration of an op, in microseconds: about thirty years."""


def _check_duration(us: float | None) -> None:
    if us is not None and not 0 <= us <= LONGEST_US:
        raise ProgramError(f"must be from 0 to {LONGEST_US:g} microseconds, not {us}", field="us")


class Api(StrEnum):
    """Whether a copy or fill is the call that may block the host (``cudaMemcpy``) or the one queued on a stream
    (``cudaMemcpyAsync``)."""

    SYNC = "sync"
    ASYNC = "async"


class CopyKind(StrEnum):
    """Direction of a copy; ``DEFAULT`` goes by the buffers, where managed memory counts as device memory."""

    H2D = "H2D"
    D2H = "D2H"
    D2D = "D2D"
    H2H = "H2H"
    DEFAULT = "Default"


class Access(StrEnum):
    """What an agent beside the host does with its range."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, kw_only=True)
class Op:
    """What every op may carry.

    Args:
        us: duration in microseconds, or None for the cost model's.
        site: where the call was made, such as ``"loop.py:41 (run_batch)"``.
        step: iteration of the loop that issued it, from 0.
        param: name of the duration parameter behind ``us``.
        value: words for what the op writes, such as ``"lengths of step 3"``.
    """

    op: ClassVar[str]
    us: float | None = None
    site: str | None = None
    step: int | None = None
    param: str | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        _check_duration(self.us)


@dataclass(frozen=True, kw_only=True)
class Launch(Op):
    """A kernel queued on ``stream``; it reads and writes the ranges when it executes, not when it is submitted."""

    op: ClassVar[str] = "launch"
    stream: str
    name: str = "kernel"
    reads: tuple[Range, ...] = ()
    writes: tuple[Range, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Memcpy(Op):
    """A copy of bytes; a ``sync`` one runs on the legacy stream, and whether the host waits depends on the kinds of
    memory."""

    op: ClassVar[str] = "memcpy"
    src: Range
    dst: Range
    api: Api = Api.ASYNC
    kind: CopyKind = CopyKind.DEFAULT
    stream: str = LEGACY


@dataclass(frozen=True, kw_only=True)
class Memset(Op):
    """A fill of bytes; a ``sync`` one runs on the legacy stream and blocks the host only for pinned targets."""

    op: ClassVar[str] = "memset"
    dst: Range
    api: Api = Api.ASYNC
    stream: str = LEGACY


@dataclass(frozen=True, kw_only=True)
class EventRecord(Op):
    """The event takes the stream's clock; the capture it held is gone."""

    op: ClassVar[str] = "event_record"
    event: str
    stream: str


@dataclass(frozen=True, kw_only=True)
class StreamWaitEvent(Op):
    """Later work of the stream comes after the capture current at this call; the host does not block."""

    op: ClassVar[str] = "stream_wait_event"
    event: str
    stream: str


@dataclass(frozen=True, kw_only=True)
class StreamWaitStream(Op):
    """Later work of ``stream`` comes after all that is now queued on ``on``; the host does not block."""

    op: ClassVar[str] = "stream_wait_stream"
    stream: str
    on: str


@dataclass(frozen=True, kw_only=True)
class EventSync(Op):
    """The host blocks until the event's current capture has executed."""

    op: ClassVar[str] = "event_sync"
    event: str


@dataclass(frozen=True, kw_only=True)
class StreamSync(Op):
    """The host blocks until all that is now queued on the stream has executed."""

    op: ClassVar[str] = "stream_sync"
    stream: str


@dataclass(frozen=True, kw_only=True)
class DeviceSync(Op):
    """The host blocks until all that is now queued on the current device has executed."""

    op: ClassVar[str] = "device_sync"


@dataclass(frozen=True, kw_only=True)
class EventQuery(Op):
    """A poll loop over an event that ended with success; it orders as ``EventSync`` does."""

    op: ClassVar[str] = "event_query_until_success"
    event: str


@dataclass(frozen=True, kw_only=True)
class StreamQuery(Op):
    """A poll loop over a stream that ended with success; it orders as ``StreamSync`` does."""

    op: ClassVar[str] = "stream_query_until_success"
    stream: str


@dataclass(frozen=True, kw_only=True)
class HostRead(Op):
    """The host reads the range, now."""

    op: ClassVar[str] = "host_read"
    range: Range
    name: str = "host read"


@dataclass(frozen=True, kw_only=True)
class HostWrite(Op):
    """The host writes the range, now."""

    op: ClassVar[str] = "host_write"
    range: Range
    name: str = "host write"


@dataclass(frozen=True, kw_only=True)
class HostWork(Op):
    """Host time without an access."""

    op: ClassVar[str] = "host_work"
    name: str = "host work"


@dataclass(frozen=True, kw_only=True)
class HostAsyncBegin(Op):
    """An agent beside the host, such as a network transfer, begins to use the range."""

    op: ClassVar[str] = "host_async_begin"
    id: str
    range: Range
    access: Access


@dataclass(frozen=True, kw_only=True)
class HostAsyncWait(Op):
    """The host blocks until the agent has ended."""

    op: ClassVar[str] = "host_async_wait"
    id: str


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of a graph: a kernel, or a record or a wait of an event, after the nodes named in ``deps``.

    Args:
        name: unique among the graph's nodes.
        reads, writes: ranges of a kernel node.
        record: event that each launch of the graph re-arms here.
        wait: event whose capture, current at the launch, this node waits for.
        deps: names of the nodes that come before this one.
        us: duration in microseconds.
    """

    name: str
    reads: tuple[Range, ...] = ()
    writes: tuple[Range, ...] = ()
    record: str | None = None
    wait: str | None = None
    deps: tuple[str, ...] = ()
    us: float | None = None

    def __post_init__(self) -> None:
        _check_duration(self.us)


@dataclass(frozen=True, kw_only=True)
class GraphLaunch(Op):
    """A launch of a captured graph: its nodes run in the order of their dependencies, after what the stream held
    before."""

    op: ClassVar[str] = "graph_launch"
    stream: str
    nodes: tuple[Node, ...]
    name: str = "graph"


@dataclass(frozen=True, kw_only=True)
class StreamWriteValue(Op):
    """The stream sets the flag when it gets here."""

    op: ClassVar[str] = "stream_write_value"
    stream: str
    flag: str


@dataclass(frozen=True, kw_only=True)
class StreamWaitValue(Op):
    """The stream blocks until some write of the flag has run; the write may be issued later."""

    op: ClassVar[str] = "stream_wait_value"
    stream: str
    flag: str


@dataclass(frozen=True, kw_only=True)
class Alloc(Op):
    """The driver's allocation of a buffer: neither an access nor an edge, unless judged as observed."""

    op: ClassVar[str] = "alloc"
    buf: str


@dataclass(frozen=True, kw_only=True)
class Free(Op):
    """The driver's release of a buffer: neither an access nor an edge."""

    op: ClassVar[str] = "free"
    buf: str


@dataclass(frozen=True, kw_only=True)
class TensorAlloc(Op):
    """The caching allocator hands out ``buf``; with ``block`` it lives in that block, which may have had other
    owners."""

    op: ClassVar[str] = "tensor_alloc"
    buf: str
    stream: str | None = None
    block: str | None = None


@dataclass(frozen=True, kw_only=True)
class TensorFree(Op):
    """The caching allocator takes ``buf`` back; its block may go to the next owner at once."""

    op: ClassVar[str] = "tensor_free"
    buf: str
    stream: str | None = None
    block: str | None = None


@dataclass(frozen=True, kw_only=True)
class RecordStream(Op):
    """The allocator learns that ``stream`` uses ``buf``: its block is not reused before what the stream holds when
    ``buf`` is freed has executed."""

    op: ClassVar[str] = "record_stream"
    buf: str
    stream: str


@dataclass(frozen=True, kw_only=True)
class SetDevice(Op):
    """``legacy`` and ``device_sync`` mean this device from here on."""

    op: ClassVar[str] = "set_device"
    device: int


OPS: dict[str, type[Op]] = {
    cls.op: cls
    for cls in (
        Launch,
        Memcpy,
        Memset,
        EventRecord,
        StreamWaitEvent,
        StreamWaitStream,
        EventSync,
        StreamSync,
        DeviceSync,
        EventQuery,
        StreamQuery,
        HostRead,
        HostWrite,
        HostWork,
        HostAsyncBegin,
        HostAsyncWait,
        GraphLaunch,
        StreamWriteValue,
        StreamWaitValue,
        Alloc,
        Free,
        TensorAlloc,
        TensorFree,
        RecordStream,
        SetDevice,
    )
}
"""Op classes by their JSON name."""


def accesses(op: Op) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """The ranges that one op reads and those that it writes; a graph launch gives those of all its nodes.

    Example:
        >>> accesses(HostRead(range=Range("x", 0, 4)))
        ((Range(buf='x', off=0, len=4, rows=1, stride=0),), ())
    """
    match op:
        case Launch():
            return op.reads, op.writes
        case Memcpy():
            return (op.src,), (op.dst,)
        case Memset():
            return (), (op.dst,)
        case HostRead():
            return (op.range,), ()
        case HostWrite():
            return (), (op.range,)
        case HostAsyncBegin():
            return ((op.range,), ()) if op.access is Access.READ else ((), (op.range,))
        case GraphLaunch():
            return tuple(r for n in op.nodes for r in n.reads), tuple(r for n in op.nodes for r in n.writes)
    return (), ()


def label(op: Op) -> str:
    """A short name for messages and pictures, such as ``"gather"`` or ``"wait(verify_done)"``.

    Example:
        >>> label(EventSync(event="copy_done"))
        'synchronize(copy_done)'
    """
    match op:
        case (
            Launch(name=name)
            | GraphLaunch(name=name)
            | HostRead(name=name)
            | HostWrite(name=name)
            | HostWork(name=name)
        ):
            return name
        case Memcpy(src=src, dst=dst):
            return f"copy {src.buf} to {dst.buf}"
        case Memset(dst=dst):
            return f"fill {dst.buf}"
        case EventRecord(event=event):
            return f"record({event})"
        case StreamWaitEvent(event=event):
            return f"wait({event})"
        case StreamWaitStream(on=on):
            return f"wait_stream({on})"
        case EventSync(event=event):
            return f"synchronize({event})"
        case StreamSync(stream=stream):
            return f"synchronize({stream})"
        case EventQuery(event=event):
            return f"query({event})"
        case StreamQuery(stream=stream):
            return f"query({stream})"
        case StreamWriteValue(flag=flag):
            return f"write {flag}"
        case StreamWaitValue(flag=flag):
            return f"wait for {flag}"
        case HostAsyncBegin(id=name):
            return f"begin {name}"
        case HostAsyncWait(id=name):
            return f"wait for {name}"
        case Alloc(buf=buf) | Free(buf=buf) | TensorAlloc(buf=buf) | TensorFree(buf=buf) | RecordStream(buf=buf):
            return f"{op.op} {buf}"
    return op.op
