"""The tap on a simulated device: an observer of it, in the recorder's own words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from refimpl.device import get
from refimpl.device.simulator import ops
from refimpl.device.simulator.capture import Capture
from refimpl.device.simulator.graphs import CUDAGraph
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.memory import buffers as sim
from refimpl.device.simulator.operators.touched import Cells as SimCells
from refimpl.device.simulator.operators.touched import Touched
from refimpl.device.simulator.streams import Event, Stream, priority
from refimpl.device.simulator.tensor import SimTensor
from refimpl.device.stated import mapped
from refimpl.program import Mem
from refimpl.record.cells import Cells, Shape, whole
from refimpl.record.host import HostReads, Operators
from refimpl.record.names import Key
from refimpl.record.serials import Serials
from refimpl.record.tap import Tap
from refimpl.record.work import Access, Buffer, HostKind, HostStep, Kind, Lane, Mark, Work

_MEM = {sim.Memory.DEVICE: Mem.DEVICE, sim.Memory.PINNED: Mem.PINNED, sim.Memory.PAGEABLE: Mem.PAGEABLE}
_FARTHEST = 1 << 48
"""More bytes than a segment has: the distance of two segments, whose numbers stand for addresses."""


class SimTap(Tap):
    """Notes what the simulated device tells its observers."""

    source = "recorded on sim"

    def __init__(self) -> None:
        super().__init__()
        self._buffers: dict[int, Buffer] = {}
        self._marks: dict[int, Mark] = {}
        self._serials = Serials()
        self._over = False
        self._open: dict[ops.Op, list[tuple[Cells, SimCells]]] = {}

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Notes what the code inside does. The host synchronizes with the device before and after."""
        dev = get("sim")
        dev.synchronize()
        with dev.observe(_Observer(self)):
            with Operators(self), HostReads(self):
                yield
            self._over = True
            dev.synchronize()

    def clock_us(self) -> float:
        """The host's virtual clock."""
        return DEVICE.host_us

    def is_on_device(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies on the device."""
        return isinstance(tensor, SimTensor)

    def key_of(self, thing: Any) -> Key | None:
        """What tells a thing from others."""
        if isinstance(thing, Stream):
            return "stream", thing.stream_id
        if isinstance(thing, Event):
            return "event", self._serials.of(thing)
        if isinstance(thing, CUDAGraph):
            return None if thing.capture is None else ("graph", self._serials.of(thing.capture))
        if isinstance(thing, SimTensor):
            return "buffer", self._buffer(thing.buffer).serial
        if isinstance(thing, torch.Tensor):
            return "buffer", self._buffer(DEVICE.host_buffers.of(thing)).serial
        if isinstance(thing, sim.Buffer):
            return "buffer", self._buffer(thing).serial
        return None

    def accesses_of_host(self, tensor: torch.Tensor) -> Iterable[Access]:
        """The bytes of a host tensor that the device has met."""
        buffer = DEVICE.host_buffers.known(tensor)
        return () if buffer is None else whole(self._buffer(buffer), tensor)

    def op_issued(self, op: ops.Op) -> None:
        """An op was put in a queue."""
        if op.launch is None:
            self.issued(self._work(op))

    def op_done(self, op: ops.Op) -> None:
        """An op ran: the cells it touched are those that its index tensors name now."""
        for cells, found in self._open.pop(op, ()):
            cells.settle(None if found.index is None else mapped(found.index, _array))

    def graph_launched(self, capture: Capture, queue: ops.Queue, nodes: list[ops.Op]) -> None:
        """A graph was launched: notes the order of its nodes while it is still known."""
        works = {op: self._work(op) for op in nodes}
        last: dict[ops.Queue, ops.Op] = {}
        after = []
        for op in nodes:
            before = (*op.after, *([last[op.queue]] if op.queue in last else []))
            after.append(tuple(works[other] for other in before if other in works))
            last[op.queue] = op
        self.launched(self._serials.of(capture), _lane(queue), tuple(works.values()), tuple(after), DEVICE.open_region)

    def host_stepped(self, step: ops.HostStep) -> None:
        """The host did something."""
        if self._over:
            return
        lane = None if step.queue is None else _lane(step.queue)
        mark = None if step.event is None else self._mark(step.event)
        kind, us = HostKind(step.kind.value), step.end_us - step.start_us
        self.stepped(HostStep(kind, lane, mark, step.success, us, step.start_us, step.end_us))

    def buffer_lived(self, buffer: sim.Buffer, begins: bool) -> None:
        """The allocator handed a buffer out or took it back; a graph's memory is the graph's."""
        if not _of_graph(buffer):
            self.lived(self._buffer(buffer), begins)

    def buffer_lent(self, buffer: sim.Buffer, stream_id: int) -> None:
        """`record_stream`."""
        self.lent(self._buffer(buffer), _lane(DEVICE.queue(stream_id)))

    def _work(self, op: ops.Op) -> Work:
        pairs = list[tuple[Cells, SimCells]]()
        reads, writes = self._named(op.reads, pairs), self._named(op.writes, pairs)
        if pairs:
            self._open[op] = pairs
        mark = None if op.event is None else self._mark(op.event)
        return Work(Kind(op.kind.value), op.name, _lane(op.queue), reads, writes, mark, op.region, op)

    def _named(self, touched: Iterable[Touched], pairs: list[tuple[Cells, SimCells]]) -> tuple[Access | Cells, ...]:
        named = list[Access | Cells]()
        for one in touched:
            buffer = self._buffer(one.buffer)
            if isinstance(one, SimCells):
                cells = Cells(buffer, Shape.of(one.tensor), whole(buffer, one.tensor))
                pairs.append((cells, one))
                named.append(cells)
            else:
                named.append(Access(buffer, *one[1:]))
        return tuple(named)

    def _buffer(self, buffer: sim.Buffer) -> Buffer:
        block = buffer.block
        shared = block is not None and _of_graph(buffer)
        key = -block.serial if block is not None and shared else buffer.serial
        found = self._buffers.get(key)
        if found is None:
            lane = None if buffer.stream_id is None or shared else _lane(DEVICE.queue(buffer.stream_id))
            address = None if block is None else block.segment.serial * _FARTHEST + block.offset
            found = self._buffers[key] = Buffer(buffer.bytes, _MEM[buffer.memory], lane, address, shared)
        found.bytes = max(found.bytes, buffer.bytes)
        return found

    def _mark(self, event: Event) -> Mark:
        serial = self._serials.of(event)
        return self._marks.setdefault(serial, Mark(serial, event.shared, event.external))


class _Observer(ops.Observer):
    def __init__(self, tap: SimTap) -> None:
        self._tap = tap

    def on_issue(self, op: ops.Op) -> None:
        self._tap.op_issued(op)

    def on_done(self, op: ops.Op) -> None:
        self._tap.op_done(op)

    def on_graph(self, capture: Capture, queue: ops.Queue, ops: list[ops.Op]) -> None:
        self._tap.graph_launched(capture, queue, ops)

    def on_host(self, step: ops.HostStep) -> None:
        self._tap.host_stepped(step)

    def on_allocate(self, buffer: sim.Buffer) -> None:
        self._tap.buffer_lived(buffer, begins=True)

    def on_free(self, buffer: sim.Buffer) -> None:
        self._tap.buffer_lived(buffer, begins=False)

    def on_record_stream(self, buffer: sim.Buffer, stream_id: int) -> None:
        self._tap.buffer_lent(buffer, stream_id)


def _lane(queue: ops.Queue) -> Lane:
    return Lane(queue.id, f"stream{queue.id}" if queue.id else "default", priority(queue.id))


def _of_graph(buffer: sim.Buffer) -> bool:
    """Whether memory belongs to graphs: its owners share it at every replay, whatever the host drops meanwhile."""
    home = None if buffer.block is None else buffer.block.home
    return home is not None and home.pool.of_graphs


def _array(index: Any) -> Any:
    """The values of an index tensor now, which PyTorch's modes must not take for a read by the program."""
    if not isinstance(index, torch.Tensor):
        return index
    with torch._C.DisableTorchFunction():
        return index.detach().numpy().copy()
