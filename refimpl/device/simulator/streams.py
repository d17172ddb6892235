"""Streams and events of the simulated device, with the names and the rules of `torch.cuda`."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch

from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.ops import HostKind, Kind, Op, Queue
from refimpl.device.simulator.pool import POOL_SIZE
from refimpl.device.simulator.refused import refuse_other_device

_IDS = 1 + 2 * POOL_SIZE


def priority(stream_id: int) -> int:
    """The priority of the pool that a stream's id lies in."""
    return -1 if POOL_SIZE < stream_id <= 2 * POOL_SIZE else 0


def event_of(given: Any) -> Event:
    """`given`, which has to be an event of the simulated device.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(given, Event):
        raise TypeError(f"sim: {given!r} is not an event of sim: use torch.get_device_module('sim').Event()")
    return given


def stream_of(given: Any) -> Stream:
    """`given`, which has to be a stream of the simulated device.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(given, Stream):
        raise TypeError(f"sim: {given!r} is not a stream of sim: use torch.get_device_module('sim').Stream()")
    return given


class Event:
    """A mark in a stream that holds one capture: what was queued there when it was last recorded.

    Args:
        enable_timing: The event takes a time, for `elapsed_time`.
        blocking: Accepted as on CUDA; it changes nothing here.
        interprocess: Accepted as on CUDA; True is an error.
        external: Recorded or awaited in a graph capture it is a node of the graph, which acts at each launch.
    Attributes:
        shared: Somebody may hold the event; false for the one inside `wait_stream`.
    Order:
        A second record replaces what the event held. A wait, query or synchronize is bound to what the event holds at
        the call. An event that was
        never recorded holds nothing: waiting for it does nothing.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if interprocess:
            raise ValueError("sim: Event(interprocess=True): the simulated device has one process, so leave it out")
        self.enable_timing, self.external = enable_timing, external
        self.shared, self._made = True, False
        self.mark: Op | None = None

    def hold(self, op: Op) -> None:
        """Makes `op` the capture that the event holds."""
        self.mark = op

    def record(self, stream: Stream | None = None) -> None:
        """Takes the clock of `stream` (the current stream if None); what the event held is gone. The host does not
        block."""
        queue = DEVICE.current if stream is None else stream_of(stream).queue
        op = Op(Kind.RECORD, "record", queue)
        op.event = self
        DEVICE.host_us += DEVICE.costs.record_us + (0.0 if self._made else DEVICE.costs.event_us)
        self._made = True
        if not (self.external and DEVICE.capture is not None and DEVICE.capture.covers(queue)):
            self.mark = op
        DEVICE.issue(op)

    def wait(self, stream: Stream | None = None) -> None:
        """Later work of `stream` (the current stream if None) comes after what the event holds now. The host does not
        block."""
        queue = DEVICE.current if stream is None else stream_of(stream).queue
        capturing = DEVICE.capture is not None and DEVICE.capture.covers(queue)
        DEVICE.host_us += DEVICE.costs.wait_us
        if self.mark is not None and not (DEVICE.capture is not None and DEVICE.capture.holds(self.mark)):
            self._refuse_captured("wait for")
        op = Op(Kind.WAIT, "wait", queue)
        op.event = self
        if self.mark is not None and not (capturing and self.external):
            op.after = (self.mark,)
        DEVICE.issue(op)

    def synchronize(self) -> None:
        """Blocks the host until what the event holds now has run."""
        self._refuse_captured("synchronize with")
        if self._is_nothing_in_capture():
            return
        DEVICE.block(self.mark, HostKind.EVENT_SYNCHRONIZE, event=self)

    def query(self) -> bool:
        """Whether what the event holds now has run; True if it was never recorded. The host does not block."""
        self._refuse_captured("query of")
        if self._is_nothing_in_capture():
            return True
        return DEVICE.ask(self.mark, HostKind.EVENT_QUERY, event=self)

    def elapsed_time(self, end_event: Event) -> float:
        """Virtual milliseconds between the two marks.

        Raises:
            RuntimeError: An event has no timing, was never recorded, or has not run yet.
        """
        if not (self.enable_timing and event_of(end_event).enable_timing):
            raise ValueError("sim: elapsed_time needs both events made with enable_timing=True")
        if self.mark is None or end_event.mark is None:
            raise ValueError("sim: elapsed_time needs both events recorded")
        DEVICE.refuse_in_capture("elapsed_time")
        self._refuse_captured("elapsed_time of")
        end_event._refuse_captured("elapsed_time of")
        if not (self.mark.done and end_event.mark.done):
            raise RuntimeError("sim: elapsed_time of an event that has not run yet: synchronize it first")
        return (end_event.mark.end_us - self.mark.end_us) / 1000.0

    def _is_nothing_in_capture(self) -> bool:
        """It was never recorded, so that CUDA is not asked, and a graph capture does not mind."""
        return self.mark is None and DEVICE.capture is not None

    def _refuse_captured(self, what: str) -> None:
        if self.mark is not None and self.mark.captured:
            raise RuntimeError(
                f"sim: {what} an event that was recorded in a graph capture: "
                "it marks nothing outside of the graph, so make it with external=True"
            )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raises: a copy would not be told when the event is recorded again."""
        raise TypeError("sim: an event cannot be copied or pickled: share the event, or make a new one and record it")

    def __repr__(self) -> str:
        return f"<sim.Event {'unrecorded' if self.mark is None else 'done' if self.mark.done else 'pending'}>"


class Stream:
    """An in-order queue of device work, unordered with every other but for events.

    As in PyTorch there are 32 streams of each priority behind all `Stream` objects: the 33rd object is the first
    stream again.

    Args:
        device: The simulated device; there is one.
        priority: Negative for the pool of high priority, -1; the simulated device runs both alike.
        stream_id: An existing stream; 0 is the default stream.
    """

    def __init__(self, device: object = None, priority: int = 0, *, stream_id: int | None = None) -> None:
        refuse_other_device("Stream", device)
        if type(priority) is not int:
            raise TypeError(f"sim: Stream(priority={priority!r}): use 0, or -1 for the pool of high priority")
        if stream_id is None:
            stream_id = DEVICE.streams.take(high=priority < 0)
        elif type(stream_id) is not int or not 0 <= stream_id <= _IDS:
            raise ValueError(f"sim: Stream(stream_id={stream_id!r}): use the stream_id of a stream that there is")
        self.stream_id = stream_id
        self.device = torch.device("sim", 0)
        self.device_index = 0
        self._outer: list[Queue] = []

    @property
    def priority(self) -> int:
        """-1 for the pool of high priority, else 0."""
        return priority(self.stream_id)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority: 0 and -1."""
        return (0, -1)

    @property
    def queue(self) -> Queue:
        """The queue behind the stream."""
        return DEVICE.queue(self.stream_id)

    def wait_event(self, event: Event) -> None:
        """Later work of this stream comes after what `event` holds now. The host does not block."""
        event_of(event).wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Later work of this stream comes after all that is now queued on `stream`. The host does not block."""
        event = Event()
        event.shared = False
        event.record(stream_of(stream))
        self.wait_event(event)

    def record_event(self, event: Event | None = None) -> Event:
        """Records `event`, or a new one, on this stream, and returns it."""
        event = Event() if event is None else event_of(event)
        event.record(self)
        return event

    def synchronize(self) -> None:
        """Blocks the host until all that is queued on this stream has run."""
        DEVICE.block(self.queue.tail, HostKind.STREAM_SYNCHRONIZE, queue=self.queue)

    def query(self) -> bool:
        """Whether all that is queued on this stream has run. The host does not block."""
        return DEVICE.ask(self.queue.tail, HostKind.STREAM_QUERY, queue=self.queue)

    def __enter__(self) -> Stream:
        DEVICE.host_us += DEVICE.costs.stream_us
        self._outer.append(DEVICE.current)
        DEVICE.current = self.queue
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        DEVICE.host_us += DEVICE.costs.stream_us
        DEVICE.current = self._outer.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash(("sim", self.stream_id))

    def __repr__(self) -> str:
        return f"<sim.Stream {self.stream_id}>"
