"""What was recorded, in words that belong to no device: work on lanes, the bytes it touches, and what the host did.

A tap turns what its device shows into these; names and programs are made of them alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol

from refimpl.program import Mem

if TYPE_CHECKING:
    from refimpl.record.cells import Cells

_serials = count(1)


@dataclass(frozen=True)
class Lane:
    """A stream.

    Args:
        key: What tells it from others of its device; 0 is the default stream.
        stem: What it is called unless it is named; None to number it.
        priority: Its priority.
    """

    key: int
    stem: str | None = None
    priority: int = 0


class Buffer:
    """One allocation; it keeps no memory alive.

    Args:
        bytes_: Its size, which may be learned later.
        mem: Where it lives.
        lane: The stream it was allocated on, if that is known.
        block: Address of the memory that it lies in, or a number in its place; buffers whose bytes overlap there own
            them one after another. None where nobody else can have them.
        of_graphs: It is all that graphs have at this address, one after another, at every replay.
        stem: What it is called unless it is named; None to call it by `mem`.
    Attributes:
        serial: What tells it from others.
    """

    __slots__ = ("block", "bytes", "lane", "mem", "of_graphs", "serial", "stem")

    def __init__(
        self,
        bytes_: int,
        mem: Mem,
        lane: Lane | None = None,
        block: int | None = None,
        of_graphs: bool = False,
        stem: str | None = None,
    ) -> None:
        self.bytes, self.mem, self.lane, self.block = bytes_, mem, lane, block
        self.of_graphs, self.stem = of_graphs, stem
        self.serial = next(_serials)


class Access(NamedTuple):
    """`rows` runs of `length` bytes, `stride` bytes apart, from `offset` in `buffer`."""

    buffer: Buffer
    offset: int
    length: int
    rows: int = 1
    stride: int = 0


@dataclass(eq=False)
class Mark:
    """An event.

    Args:
        serial: What tells it from others.
        shared: Somebody may hold it; false for the one inside `wait_stream`.
        external: In a graph it is a node, which acts at each launch. A GPU does not tell; there it is known once the
            event, recorded in a capture, is used outside, where another would be an error.
        captured: It was last recorded in a capture, as far as a tap has to find `external` out.
    """

    serial: int
    shared: bool = True
    external: bool = False
    captured: bool = False


class Named(Protocol):
    """A region: what is issued in it in a row, on one stream, is one op of the program."""

    @property
    def name(self) -> str:
        """Its name."""


class Times(Protocol):
    """When work ran, in microseconds, for a device that tells."""

    us: float
    submit_us: float
    start_us: float
    end_us: float
    done: bool


class Kind(Enum):
    """What a piece of work is."""

    LAUNCH = "launch"
    COPY = "copy"
    RECORD = "record"
    WAIT = "wait"


@dataclass(eq=False)
class Work:
    """One thing a stream does.

    Args:
        kind: What it is.
        name: The operator's name, or the mark's.
        lane: Its stream.
        reads, writes: What it touches.
        mark: The event recorded or waited for.
        region: The innermost region it was issued in.
        times: When it ran, or None.
    """

    kind: Kind
    name: str
    lane: Lane
    reads: tuple[Access | Cells, ...] = ()
    writes: tuple[Access | Cells, ...] = ()
    mark: Mark | None = None
    region: Named | None = None
    times: Times | None = None


class HostKind(Enum):
    """What the host did, beside issuing work."""

    EVENT_SYNCHRONIZE = "event_sync"
    STREAM_SYNCHRONIZE = "stream_sync"
    DEVICE_SYNCHRONIZE = "device_sync"
    EVENT_QUERY = "event_query"
    STREAM_QUERY = "stream_query"
    WORK = "host_work"
    STAGING = "staging"


@dataclass(frozen=True)
class HostStep:
    """One thing the host did.

    Args:
        kind: What it did.
        lane: The stream it named.
        mark: The event it named.
        success: A query's answer; True otherwise.
        us: How long, for work of its own, if that is known.
        start_us, end_us: Host time, for a device that tells.
    """

    kind: HostKind
    lane: Lane | None = None
    mark: Mark | None = None
    success: bool = True
    us: float | None = None
    start_us: float = 0.0
    end_us: float = 0.0


def one_region(first: Work, second: Work) -> bool:
    """Whether two pieces of work in a row are parts of one named step."""
    kinds = (Kind.LAUNCH, Kind.COPY)
    both = first.kind in kinds and second.kind in kinds
    return both and first.region is not None and first.region is second.region and first.lane == second.lane
