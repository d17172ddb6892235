"""The programs of this chapter: what a step of some backend reads where, and an event that two launches share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from refimpl.fences import SharedReadBoundary
from refimpl.program import (
    Buffer,
    EventRecord,
    GraphLaunch,
    Launch,
    Node,
    Op,
    Program,
    Range,
    Stream,
    StreamWaitEvent,
    StreamWaitStream,
    StreamWaitValue,
    StreamWriteValue,
)

ROW = 128
TABLES = ("req_to_token", "full_to_swa")
"""What schedule overwrites and a forward reads."""
READ_DONE = "read_done"
STREAMS = {"schedule": Stream(), "forward": Stream()}
BUFFERS = {name: Buffer(ROW) for name in (*TABLES, "page_table", "swa_page_table", "tokens")}


def whole(*names: str) -> tuple[Range, ...]:
    """All of some buffers."""
    return tuple(Range(name, 0, ROW) for name in names)


@dataclass(frozen=True)
class Backend:
    """What a step of a backend reads of the shared tables, in the order of its stream.

    Args:
        load: by ``load_batch``, before the replay.
        metadata: by the kernel that the graph begins with.
        layers: by kernels of the layers, within the graph.
        behind: by kernels that are launched one by one behind the replay.
    """

    load: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()


BACKENDS = MappingProxyType(
    {
        "snapshot": Backend(load=TABLES),
        "metadata captured": Backend(load=TABLES, metadata=TABLES),
        "translation in each layer": Backend(load=TABLES, layers=("full_to_swa",)),
        "a kernel behind the graph": Backend(load=TABLES, behind=("req_to_token",)),
    }
)


def step_of(backend: Backend, boundary: SharedReadBoundary) -> Program:
    """A step of a backend that declares a boundary, and schedule overwriting the tables behind the barrier.

    Args:
        backend: what it reads.
        boundary: what it declares.
    """
    event = EventRecord(event=READ_DONE, stream="forward")
    barrier = (
        StreamWaitStream(stream="schedule", on="forward")
        if boundary is SharedReadBoundary.UNKNOWN
        else StreamWaitEvent(event=READ_DONE, stream="schedule")
    )
    ops = (
        _kernel("load_batch", backend.load, whole("page_table", "swa_page_table")),
        *([event] if boundary is SharedReadBoundary.PRE_REPLAY else []),
        GraphLaunch(stream="forward", name="replay", nodes=tuple(_nodes(backend, boundary))),
        *([event] if boundary is SharedReadBoundary.POST_REPLAY else []),
        *([_kernel("read on", backend.behind)] if backend.behind else []),
        barrier,
        Launch(stream="schedule", name="prepare", writes=whole(*TABLES)),
    )
    return _program(ops, f"{boundary}")


def _nodes(backend: Backend, boundary: SharedReadBoundary) -> Iterable[Node]:
    yield Node(name="metadata", reads=whole(*backend.metadata))
    if boundary is SharedReadBoundary.IN_REPLAY:
        yield Node(name=READ_DONE, record=READ_DONE, deps=("metadata",))
    yield Node(name="layers", reads=whole("page_table", "swa_page_table", *backend.layers), deps=("metadata",))


FORKED = (
    Node(name="gather rows", reads=whole("req_to_token"), writes=whole("page_table")),
    Node(
        name="translate",
        reads=whole("page_table", "full_to_swa"),
        writes=whole("swa_page_table"),
        deps=("gather rows",),
    ),
    Node(name="layer 1", reads=whole("page_table"), writes=whole("tokens"), deps=("gather rows",)),
    Node(
        name="layer 2",
        reads=whole("swa_page_table", "tokens"),
        writes=whole("tokens"),
        deps=("layer 1", "translate"),
    ),
)
"""A graph whose two branches meet in its last layer: both begin with live tables."""


def forked(deps: Sequence[str]) -> Program:
    """Two replays of ``FORKED`` with a record node, each followed by a barrier and by what schedule overwrites.

    Args:
        deps: names of the nodes that the record comes behind.
    """
    node = Node(name=READ_DONE, record=READ_DONE, deps=tuple(deps))
    ops: list[Op] = []
    for step in range(2):
        ops += [
            StreamWaitStream(stream="forward", on="schedule", step=step),
            GraphLaunch(stream="forward", name=f"replay {step}", nodes=(*FORKED, node), step=step),
            StreamWaitEvent(event=READ_DONE, stream="schedule", step=step),
            Launch(stream="schedule", name=f"prepare {step + 1}", writes=whole(*TABLES), step=step),
        ]
    return _program(ops, f"a record behind {', '.join(deps) or 'nothing'}")


def pieces(boundary: SharedReadBoundary) -> Program:
    """A forward in two graphs, with attention launched between them on the live table.

    Args:
        boundary: what its runner declares; the runner replays the second piece last.
    """
    event = EventRecord(event=READ_DONE, stream="forward")
    pre = boundary is SharedReadBoundary.PRE_REPLAY
    ops = (
        *([event] if pre else []),
        GraphLaunch(stream="forward", name="piece 1", nodes=(Node(name="layers 1", writes=whole("tokens")),)),
        _kernel("attention", ("req_to_token",)),
        GraphLaunch(stream="forward", name="piece 2", nodes=(Node(name="layers 2", reads=whole("tokens")),)),
        StreamWaitEvent(event=READ_DONE, stream="schedule")
        if pre
        else StreamWaitStream(stream="schedule", on="forward"),
        Launch(stream="schedule", name="prepare", writes=whole("req_to_token")),
    )
    return _program(ops, f"pieces, {boundary}")


def handed_over(events: Sequence[str], early: bool = False) -> Program:
    """Replays whose results a copy hands on; each replay but the first needs what stands behind the copy before it.

    Args:
        events: that the record node of each replay arms, by step; the copy of a step waits for its step's.
        early: whether a copy's wait is called before the next replay is launched, not behind it.
    """
    ops: list[Op] = []
    for step, event in enumerate(events):
        if step > 0:
            copy = _copy(step - 1, events[step - 1])
            needs = StreamWaitValue(stream="forward", flag=f"handed on {step - 1}", step=step)
            replay = _recording(step, event)
            ops += [*copy, needs, replay] if early else [needs, replay, *copy]
        else:
            ops.append(_recording(step, event))
    ops += _copy(len(events) - 1, events[-1])
    streams = {"forward": Stream(), "copy": Stream()}
    return Program(id="one event, several launches", streams=streams, buffers={}, ops=tuple(ops))


def _recording(step: int, event: str) -> Op:
    nodes = (Node(name="step"), Node(name="record", record=event, deps=("step",)))
    return GraphLaunch(stream="forward", name=f"replay {step}", nodes=nodes, step=step)


def _copy(step: int, event: str) -> list[Op]:
    return [
        StreamWaitEvent(event=event, stream="copy", step=step),
        Launch(stream="copy", name=f"copy {step}", step=step),
        StreamWriteValue(stream="copy", flag=f"handed on {step}", step=step),
    ]


def _kernel(name: str, reads: Sequence[str], writes: tuple[Range, ...] = ()) -> Launch:
    return Launch(stream="forward", name=name, reads=whole(*reads), writes=writes)


def _program(ops: Sequence[Op], name: str) -> Program:
    return Program(id=name, streams=STREAMS, buffers=BUFFERS, ops=tuple(ops))
