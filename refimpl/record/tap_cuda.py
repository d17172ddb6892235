"""The tap on a GPU: operators by a dispatch mode, ordering calls by replaced methods, memory by the allocator's
callbacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from refimpl.device.listening import Listener, listening
from refimpl.device.simulator.memory.buffers import meet
from refimpl.device.stated import Index, Statement, Touch, mapped, one_launch_around, parts_of, stated
from refimpl.program import Mem
from refimpl.record.cells import Cells, Shape, whole
from refimpl.record.cuda_calls import overheard
from refimpl.record.cuda_graphs import CapturedCells, CaptureNotes, held_of
from refimpl.record.cuda_log import Held, IndexLog, Slot, held_in_capture, synchronize_blocking
from refimpl.record.cuda_memory import HostMemory, device_memory, lane_of
from refimpl.record.cuda_notes import Region, keep_notes, mark_of, notes_of, serial_of
from refimpl.record.cuda_operators import CudaOperators
from refimpl.record.host import HostReads
from refimpl.record.names import Key
from refimpl.record.tap import Tap
from refimpl.record.work import Access, Buffer, HostKind, HostStep, Kind, Lane, Mark, Named, Work

_host = HostMemory()


class CudaTap(Tap):
    """Notes what PyTorch does on one GPU.

    Args:
        device: The GPU.
    """

    source = "recorded on cuda"

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._index = torch.cuda.current_device() if device.index is None else device.index
        self._memory = device_memory()
        self._log: IndexLog | None = None
        self._open: list[tuple[Cells, Index]] = []
        self._region: Named | None = None
        self._capture: CaptureNotes | None = None
        self._joining = False

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Notes what the code inside does. The host synchronizes with the GPU before and after."""
        synchronize_blocking()
        log = self._log = IndexLog(torch.device("cuda", self._index))
        self._memory.tap = self
        try:
            with ExitStack() as stack:
                for one in (overheard(self), listening(_Listener(self)), CudaOperators(self), HostReads(self)):
                    stack.enter_context(one)
                yield
            synchronize_blocking()
            log.read_blocking()
            self._settle(log)
        finally:
            self._memory.tap, self._log = None, None
            self._open.clear()

    def key_of(self, thing: Any) -> Key | None:
        """What tells a thing from others."""
        if isinstance(thing, torch.cuda.Event):
            return "event", self.mark(thing).serial
        if isinstance(thing, torch.cuda.CUDAGraph):
            return "graph", serial_of(thing)
        if isinstance(thing, torch.Stream):
            return "stream", lane_of(thing).key
        return ("buffer", self.buffer_of(thing).serial) if isinstance(thing, torch.Tensor) else None

    def is_on_device(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies on a GPU."""
        return tensor.is_cuda

    def accesses_of_host(self, tensor: torch.Tensor) -> Iterable[Access]:
        """The bytes of a host tensor that is pinned, or that the device has met."""
        buffer = _host.known(tensor)
        return () if buffer is None else whole(buffer, tensor)

    def buffer_of(self, tensor: torch.Tensor) -> Buffer:
        """The allocation that a tensor lies in.

        Raises:
            RuntimeError: It lies on another GPU.
        """
        if not tensor.is_cuda:
            return _host.of(tensor)
        if tensor.device.index != self._index:
            raise RuntimeError(
                f"record: a tensor on {tensor.device} in a recording of cuda:{self._index}: "
                "one GPU is recorded at a time, so keep the others' work out of the recording"
            )
        return self._memory.of(tensor)

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Whether a host tensor lies in pinned memory."""
        return _host.of(tensor).mem is Mem.PINNED

    def touched_by(
        self, reads: Sequence[Touch], writes: Sequence[Touch], issued: bool = False
    ) -> tuple[list[Access | Cells], list[Access | Cells]]:
        """The bytes of what is touched, with the statements around it heard; index tensors are copied to the log
        here, so an operator is issued after this. If it was `issued` before, the index tensors that it writes are
        lost, and the table as a whole stands for the cells."""
        reads, writes = stated(reads, writes, self.buffer_of)
        written = [touch.tensor for touch in writes] if issued else []
        kept: dict[int, Slot | Held | None] = {}
        found = [[c for t in touches for c in self._bytes(t, kept, written)] for touches in (reads, writes)]
        return found[0], found[1]

    def work(
        self, kind: Kind, name: str, reads: Sequence[Access | Cells] = (), writes: Sequence[Access | Cells] = ()
    ) -> None:
        """Notes work that was issued on the current stream."""
        lane = _current()
        if (statement := one_launch_around()) is not None and statement.stream is None:
            statement.stream = lane
        self._add(Work(kind, name, lane, tuple(reads), tuple(writes), region=self._region))

    def blocked(self) -> None:
        """Notes that the host waited for the current stream."""
        self.stepped(HostStep(HostKind.STREAM_SYNCHRONIZE, _current()))

    def mark(self, event: Any) -> Mark:
        """An event."""
        return mark_of(event, shared=not self._joining)

    @contextmanager
    def region(self, name: str) -> Iterator[None]:
        """What is issued inside has a name."""
        outer, self._region = self._region, Region(name)
        try:
            yield
        finally:
            self._region = outer

    def recorded(self, event: Any, stream: Any) -> None:
        """`event.record(stream)`."""
        mark, lane = self.mark(event), _lane(stream)
        mark.captured = self._capture is not None and self._capture.covers(lane)
        self._add(Work(Kind.RECORD, "record", lane, mark=mark, region=self._region))

    def waited(self, event: Any, stream: Any) -> None:
        """`stream` waits for `event`."""
        mark, lane = self.mark(event), _lane(stream)
        inside = self._capture is not None and self._capture.holds(mark)
        if not inside and (mark.captured or (self._capture is not None and self._capture.covers(lane))):
            mark.external = True
        self._add(Work(Kind.WAIT, "wait", lane, mark=mark, region=self._region))

    def joining(self, on: bool) -> None:
        """A `wait_stream` begins or ends."""
        self._joining = on

    def synchronized(self, event: Any = None, stream: Any = None) -> None:
        """The host was blocked."""
        if event is not None:
            self.stepped(HostStep(HostKind.EVENT_SYNCHRONIZE, mark=self._outside(event)))
        elif stream is not None:
            self.stepped(HostStep(HostKind.STREAM_SYNCHRONIZE, lane_of(stream)))
        else:
            self.stepped(HostStep(HostKind.DEVICE_SYNCHRONIZE))

    def asked(self, success: bool, event: Any = None, stream: Any = None) -> None:
        """The host asked an event or a stream."""
        if event is not None:
            self.stepped(HostStep(HostKind.EVENT_QUERY, mark=self._outside(event), success=success))
        else:
            self.stepped(HostStep(HostKind.STREAM_QUERY, lane_of(stream), success=success))

    def capture_began(self, graph: Any) -> None:
        """A capture began on the current stream."""
        self._capture = CaptureNotes(_current())

    def capture_ended(self, graph: Any) -> None:
        """The capture ended well."""
        if self._capture is not None:
            keep_notes(graph, self._capture)
        self._capture = None

    def capture_failed(self, graph: Any) -> None:
        """The graph holds nothing."""
        self._capture = None
        keep_notes(graph, None)

    def launching(self, graph: Any) -> None:
        """Raises if nothing is known of the graph."""
        if notes_of(graph) is None:
            raise RuntimeError(
                "record: a graph is launched that was captured outside of any recording, so nobody knows what its "
                "nodes touch: capture it inside `with refimpl.record()`, in this recording or an earlier one"
            )

    def graph_launched(self, graph: Any) -> None:
        """A graph was launched on the current stream."""
        notes = notes_of(graph)
        if notes is None:
            return
        works, after, cells = notes.instantiate()
        slots = {}
        for one, index in cells:
            for held in held_of(index):
                if held not in slots and self._log is not None:
                    slots[held] = self._log.keep_held(held)
            self._open.append((one, mapped(index, lambda part: slots[part] if isinstance(part, Held) else part)))
        self.launched(serial_of(graph), _current(), works, after, self._region)

    def stated_launch(self, statement: Statement) -> None:
        """A launch that no operator shows, or the rest of one, on the stream of those that do."""
        if statement.stream in (None, _current()):
            self.work(Kind.LAUNCH, statement.launch or "launch", *self.touched_by((), (), issued=True))

    def _outside(self, event: Any) -> Mark:
        """An event that the host asks or waits for: one recorded in a capture is a node of the graph, or this could not
        be."""
        mark = self.mark(event)
        mark.external = mark.external or mark.captured
        return mark

    def _add(self, work: Work) -> None:
        capture = self._capture
        joins = capture is not None and work.kind is Kind.WAIT and work.mark is not None and capture.holds(work.mark)
        if capture is not None and (joins or capture.covers(work.lane)):
            capture.add(work)
        else:
            self.issued(work)

    def _bytes(
        self, touch: Touch, kept: dict[int, Slot | Held | None], written: Sequence[torch.Tensor]
    ) -> Iterable[Access | Cells]:
        buffer = self.buffer_of(touch.tensor)
        everything = whole(buffer, touch.tensor)
        if touch.index is None:
            return everything
        shape = Shape.of(touch.tensor)
        parts = parts_of(touch.index)
        if any(isinstance(part, torch.Tensor) and part.is_cuda and meet(part, written) for part in parts):
            return (Cells(buffer, shape, everything),)
        index = mapped(touch.index, lambda part: self._kept(part, kept))
        if self._capture is not None and self._capture.covers(_current()):
            return (CapturedCells(buffer, shape, everything, index),)
        cells = Cells(buffer, shape, everything)
        self._open.append((cells, index))
        return (cells,)

    def _kept(self, part: Any, kept: dict[int, Slot | Held | None]) -> Any:
        """An index tensor of the device as a place in the log, of the host as its values."""
        if not isinstance(part, torch.Tensor):
            return part
        if not part.is_cuda:
            with torch._C.DisableTorchFunction():
                return part.detach().numpy().copy()
        if id(part) not in kept and self._log is not None:
            capturing = torch.cuda.is_current_stream_capturing()
            kept[id(part)] = held_in_capture(part) if capturing else self._log.keep(part)
        return kept.get(id(part))

    def _settle(self, log: IndexLog) -> None:
        for cells, index in self._open:
            cells.settle(mapped(index, log.values))


class _Listener(Listener):
    def __init__(self, tap: CudaTap) -> None:
        self._tap = tap

    def region(self, name: str) -> Any:
        return self._tap.region(name)

    def worked(self, us: float) -> None:
        self._tap.stepped(HostStep(HostKind.WORK, us=us))

    def slept(self, us: float) -> None:
        self._tap.work(Kind.LAUNCH, "sleep")

    def launched(self, statement: Statement) -> None:
        self._tap.stated_launch(statement)


def _current() -> Lane:
    return lane_of(torch.cuda.current_stream())


def _lane(stream: Any) -> Lane:
    return _current() if stream is None else lane_of(stream)
