"""Small programs that several tests share."""

from refimpl.program import (
    Buffer,
    EventRecord,
    EventSync,
    GraphLaunch,
    HostWork,
    Launch,
    Mem,
    Memcpy,
    Node,
    Op,
    Program,
    Range,
    Span,
    Stream,
    StreamKind,
    StreamWaitEvent,
    Trace,
)

BUFFERS = {"x": Buffer(64), "y": Buffer(64), "pinned": Buffer(64, Mem.PINNED), "pageable": Buffer(64, Mem.PAGEABLE)}
STREAMS = {"s": Stream(), "t": Stream(), "b": Stream(StreamKind.BLOCKING), "far": Stream(StreamKind.BLOCKING, device=1)}


def program(*ops: Op, **streams: Stream) -> Program:
    """A program over two non-blocking streams, a blocking one and a blocking one of device 1."""
    return Program(ops=ops, streams=streams or STREAMS, buffers=BUFFERS, id="test")


def of(buf: str) -> Range:
    """The whole of a buffer."""
    return Range(buf, 0, 64)


def span(trace: Trace, name: str) -> Span:
    """The only span of that name."""
    (found,) = [s for s in trace.spans if s.name == name]
    return found


def times(trace: Trace, name: str) -> tuple[float, float]:
    """Start and end of the only span of that name."""
    found = span(trace, name)
    return found.start_us, found.end_us


def overlapped(fence: str, steps: int = 6, host_us: float = 600, graph_us: float = 2000) -> Program:
    """A loop that builds step n while the GPU runs step n - 1; ``fence`` is ``synchronize`` or ``wait``."""
    ops: list[Op] = []
    for n in range(steps):
        if n and fence == "synchronize":
            ops.append(EventSync(event=f"verify_done {n - 1}", step=n))
        if n and fence == "wait":
            ops.append(StreamWaitEvent(event=f"verify_done {n - 1}", stream="schedule", step=n))
        ops += [
            HostWork(name=f"build {n}", us=host_us, step=n),
            Launch(stream="schedule", name=f"prepare {n}", us=0, step=n),
            EventRecord(event=f"prepared {n}", stream="schedule", step=n),
            StreamWaitEvent(event=f"prepared {n}", stream="forward", step=n),
            GraphLaunch(stream="forward", nodes=(Node(name=f"verify {n}", us=graph_us),), step=n),
            EventRecord(event=f"verify_done {n}", stream="forward", step=n),
            Memcpy(src=of("x"), dst=of("pinned"), stream="forward", us=0, step=n),
            EventRecord(event=f"copied {n}", stream="forward", step=n),
        ]
        if n:
            ops.append(EventSync(event=f"copied {n - 1}", step=n))
    return program(*ops, schedule=Stream(), forward=Stream())
