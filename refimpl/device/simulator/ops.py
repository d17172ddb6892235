"""One entry of a stream's queue, and what the host does beside it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from refimpl.device.simulator.memory.buffers import Buffer

if TYPE_CHECKING:
    from refimpl.device.simulator.capture import Capture
    from refimpl.device.simulator.operators.touched import Touched
    from refimpl.device.simulator.regions import Region
    from refimpl.device.simulator.streams import Event

Action = Callable[[], None]
"""What an op does when it runs. One that is an `Effect` can be done in pieces; another acts at its first piece."""

Landing = Callable[[int], None]
"""Stores one piece of what an op has computed: pieces 0, 1, … in this order."""


class Effect(ABC):
    """An action that can be split, so that other streams see half of what it writes."""

    __slots__ = ()

    @abstractmethod
    def __call__(self) -> None:
        """Does all of it at one instant."""

    @abstractmethod
    def begin(self, pieces: int) -> Landing:
        """Reads and computes now and stores nothing; what is returned stores the results, piece by piece."""


class Kind(Enum):
    """What an op in a queue is."""

    LAUNCH = "launch"
    COPY = "copy"
    RECORD = "record"
    WAIT = "wait"


class Queue:
    """The in-order queue behind a stream; two `Stream` objects with one id share it.

    Attributes:
        id: The stream's id; below zero for a branch of one launch of a graph.
        lane: Its number in the present run, by which schedules are named; 0 until the run gives it work.
        tail: The last op issued, and done or not.
        clock: When it will have done what was issued, as far as virtual time is known.
    """

    __slots__ = ("clock", "id", "lane", "tail")

    def __init__(self, id_: int) -> None:
        self.id = id_
        self.lane = 0
        self.tail: Op | None = None
        self.clock = 0.0

    def __repr__(self) -> str:
        return f"stream {self.id}"


class Op:
    """Device work that was issued: queued until the schedule runs it, at one instant or in pieces.

    Attributes:
        seq: Place in the order in which the host issued ops.
        kind: What it is.
        name: The operator's name, or the mark's.
        queue: The queue it stands in.
        us: Its duration on the device.
        submit_us: Host time at which it was issued.
        after: Ops of other queues that it comes after; one of them may be still to be issued.
        previous: The op before it in its queue, while that one is queued.
        reads, writes: Bytes touched; empty unless somebody observes.
        event: The event recorded or waited for.
        region: The cost region it was issued in, the innermost.
        launch: Serial number of the graph launch it is a node of, else None.
        ready_us, start_us, end_us: When its queue reached it, when it started, when the last of its effect landed;
            `end_us` is infinite until a schedule knows it.
        done: It has run, its last piece included.
        landing: Stores its pieces, once it has begun in pieces.
        captured: It is a node of a graph under capture or captured, and never runs itself.
        make: Makes the action anew for one launch of a graph, where the action draws random numbers.
    """

    __slots__ = (
        "after",
        "captured",
        "done",
        "end_us",
        "event",
        "kind",
        "landing",
        "launch",
        "make",
        "name",
        "previous",
        "queue",
        "reads",
        "ready_us",
        "region",
        "run",
        "seq",
        "start_us",
        "submit_us",
        "us",
        "writes",
    )

    def __init__(
        self,
        kind: Kind,
        name: str,
        queue: Queue,
        us: float = 0.0,
        run: Action | None = None,
        make: Callable[[], Action] | None = None,
    ) -> None:
        self.kind, self.name, self.queue, self.us, self.run, self.make = kind, name, queue, us, run, make
        self.seq = -1
        self.submit_us = self.ready_us = self.start_us = 0.0
        self.end_us = math.inf
        self.landing: Landing | None = None
        self.after: tuple[Op, ...] = ()
        self.previous: Op | None = None
        self.reads: tuple[Touched, ...] = ()
        self.writes: tuple[Touched, ...] = ()
        self.event: Event | None = None
        self.region: Region | None = None
        self.launch: int | None = None
        self.done = self.captured = False

    def again(self, queue: Queue) -> Op:
        """A fresh op that does what this node of a graph does, for one launch of it."""
        op = Op(self.kind, self.name, queue, self.us, self.make() if self.make else self.run, self.make)
        op.reads, op.writes, op.event, op.region = self.reads, self.writes, self.event, self.region
        return op

    def __repr__(self) -> str:
        return f"Op({self.seq}, {self.kind.value} {self.name} on {self.queue}, {'done' if self.done else 'queued'})"


class SyncDebug(Enum):
    """What happens where an operator or a copy makes the host wait."""

    DEFAULT = "default"
    WARN = "warn"
    ERROR = "error"


class HostKind(Enum):
    """What the host did, beside issuing ops."""

    EVENT_SYNCHRONIZE = "event_sync"
    STREAM_SYNCHRONIZE = "stream_sync"
    DEVICE_SYNCHRONIZE = "device_sync"
    EVENT_QUERY = "event_query"
    STREAM_QUERY = "stream_query"
    WORK = "host_work"
    STAGING = "staging"

    @property
    def words(self) -> str:
        """Its name in a sentence: "event synchronize"."""
        return self.value.replace("sync", "synchronize").replace("_", " ")


@dataclass(frozen=True)
class HostStep:
    """One thing the host did: it lasted from `start_us` to `end_us` on the host's clock.

    Args:
        kind: What it did.
        start_us, end_us: Host time; for a synchronize the host was blocked in between.
        queue: The stream it named.
        event: The event it named.
        op: The op it blocked for, or asked for.
        success: A query's answer; True otherwise.
    """

    kind: HostKind
    start_us: float
    end_us: float
    queue: Queue | None = None
    event: Any = None
    op: Op | None = None
    success: bool = True


class Observer:
    """Looks on while a simulated device works; subclass it and override what you need.

    The device knows nothing of who looks on, and reads and writes are worked out only while somebody does.

    Example:
        >>> class Names(Observer):
        ...     def on_issue(self, op):
        ...         print(op.name)
    """

    def on_issue(self, op: Op) -> None:
        """An op was put in its queue (a graph's nodes too, at each launch), in the order in which the host issued
        them."""

    def on_done(self, op: Op) -> None:
        """An op ran; its times are set."""

    def on_host(self, step: HostStep) -> None:
        """The host blocked, asked or worked."""

    def on_graph(self, capture: Capture, queue: Queue, ops: list[Op]) -> None:
        """A graph was launched on `queue`; its nodes follow one by one through `on_issue`."""

    def on_allocate(self, buffer: Buffer) -> None:
        """Device memory or pinned memory was allocated; `buffer.block` says which."""

    def on_free(self, buffer: Buffer) -> None:
        """The last tensor in an allocation is gone: its block is handed on, once the streams in `buffer.recorded` have
        done what is queued on them now."""

    def on_record_stream(self, buffer: Buffer, stream_id: int) -> None:
        """`record_stream` told that a stream uses an allocation."""
