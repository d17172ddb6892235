"""``lower``: a ``Program``, call by call, to the units that its lanes take and to what each of them waits for."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from refimpl import program as p
from refimpl.order.copies import HostRule, copy_rule, fill_rule, runs_on
from refimpl.order.units import Bytes, Call, Unit, Units
from refimpl.program import LEGACY, Op, Program, Range, StreamKind, label, topological, unclear_records


def lower(program: Program) -> Units:
    """The units and calls of a program, under the strict reading of the rules.

    Example:
        >>> from refimpl.program import EventRecord, EventSync, Launch, Stream, StreamWaitEvent
        >>> units = lower(Program(
        ...     streams={"forward": Stream(), "schedule": Stream()},
        ...     ops=(
        ...         Launch(stream="forward", name="verify"), EventRecord(event="verify_done", stream="forward"),
        ...         StreamWaitEvent(event="verify_done", stream="schedule"), EventSync(event="verify_done"),
        ...     ),
        ... ))
        >>> [(unit.lane, unit.name, unit.after) for unit in units.units]
        [(1, 'verify', ()), (1, 'record(verify_done)', ()), (2, 'wait(verify_done)', (1,))]
        >>> [(call.units, call.until) for call in units.calls]
        [((0,), ()), ((1,), ()), ((2,), ()), ((), (1,))]
    """
    lowering = _Lowering(program)
    for index, op in enumerate(program.ops):
        lowering.call(index, op)
    return lowering.result()


class _Queue:
    """What a stream holds.

    Args:
        legacy: it is a device's legacy stream.
        blocking: it and the legacy stream of its device wait for each other.
    """

    def __init__(self, name: str, device: int, blocking: bool, legacy: bool = False) -> None:
        self.name, self.device, self.blocking, self.legacy = name, device, blocking, legacy
        self.lane: int | None = None
        self.last: tuple[int, ...] = ()
        """The units that its next one comes after: the one before, or the ends of a graph."""
        self.barrier: tuple[int, ...] = ()
        """An action of the legacy stream that came since, which its next unit comes after as well."""


class _Lowering:
    """Follows the host call by call."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._calls: list[Call] = []
        self._units: list[Unit] = []
        self._lanes: dict[int, str] = {}
        self._positive, self._negative = 0, 0
        self._writers: dict[str, list[int]] = {}
        self._device = 0
        self._streams = {
            name: _Queue(name, s.device, s.kind is not StreamKind.NONBLOCKING) for name, s in program.streams.items()
        }
        self._legacy: dict[int, _Queue] = {}
        self._captures: dict[str, tuple[int, ...]] = {}
        self._agents: dict[str, list[int]] = {}
        self._allocator = _Allocator(program)

    def result(self) -> Units:
        """What was lowered."""
        writers = {flag: tuple(units) for flag, units in self._writers.items()}
        return Units(self._program, tuple(self._calls), tuple(self._units), self._lanes, writers)

    def call(self, index: int, op: Op) -> None:
        """The host makes a call."""
        before = len(self._units)
        call = self._make(Call(index, label(op)), op)
        self._calls.append(replace(call, units=tuple(range(before, len(self._units)))))

    # ── streams ──

    def _queue(self, stream: str) -> _Queue:
        if stream != LEGACY:
            return self._streams[stream]
        return self._legacy_of(self._device)

    def _legacy_of(self, device: int) -> _Queue:
        name = LEGACY if device == 0 else f"{LEGACY} of device {device}"
        return self._legacy.setdefault(device, _Queue(name, device, blocking=False, legacy=True))

    def _beside(self, legacy: _Queue) -> list[_Queue]:
        """The streams that wait for this legacy stream, and it for them."""
        return [queue for queue in self._streams.values() if queue.blocking and queue.device == legacy.device]

    def _held(self, queue: _Queue) -> tuple[int, ...]:
        """The last units of all that the stream holds: for legacy also what stands in the streams that it waits
        for."""
        held = [*queue.last, *queue.barrier]
        if queue.legacy:
            held += [unit for other in self._beside(queue) if not other.barrier for unit in other.last]
        return tuple(dict.fromkeys(held))

    def _push(self, queue: _Queue, op: int, name: str, after: Iterable[int] = (), **more: object) -> int:
        """A unit at the end of a stream."""
        if queue.lane is None:
            queue.lane = self._new_lane(queue.name)
        unit = self._add(op, queue.lane, name, [*self._held(queue), *after], **more)
        self._ends(queue, (unit,))
        return unit

    def _ends(self, queue: _Queue, last: tuple[int, ...]) -> None:
        """The stream now ends in these units; an action of legacy holds back the streams beside it."""
        queue.last, queue.barrier = last, ()
        if queue.legacy:
            for other in self._beside(queue):
                other.barrier = last

    def _new_lane(self, name: str) -> int:
        self._positive += 1
        self._lanes[self._positive] = name
        return self._positive

    def _add(self, op: int, lane: int, name: str, after: Iterable[int], **more: object) -> int:
        index = len(self._units)
        others = tuple(unit for unit in dict.fromkeys(after) if self._units[unit].lane != lane)
        self._units.append(Unit(index, op, lane, name, after=others, **more))  # type: ignore[arg-type]
        return index

    # ── calls ──

    def _make(self, call: Call, op: Op) -> Call:
        """Issues the units of an op; returns the call with what it waits for and uses."""
        i, name, place = call.op, call.name, self._allocator.place
        match op:
            case p.Launch():
                self._push(self._queue(op.stream), i, name, reads=place(op.reads), writes=place(op.writes))
            case p.Memcpy():
                return self._copy(call, op)
            case p.Memset():
                unit = self._push(self._queue(runs_on(op)), i, name, writes=place((op.dst,)))
                if fill_rule(op, self._program.buffers) is HostRule.BLOCKS:
                    return replace(call, until=(unit,))
            case p.EventRecord():
                self._captures[op.event] = (self._push(self._queue(op.stream), i, name),)
            case p.StreamWaitEvent():
                self._push(self._queue(op.stream), i, name, self._captures.get(op.event, ()))
            case p.StreamWaitStream():
                mark = self._push(self._queue(op.on), i, f"record of {name}")
                self._push(self._queue(op.stream), i, name, (mark,))
            case p.StreamWriteValue():
                self._writers.setdefault(op.flag, []).append(self._push(self._queue(op.stream), i, name, sets=op.flag))
            case p.StreamWaitValue():
                self._push(self._queue(op.stream), i, name, flag=op.flag)
            case p.GraphLaunch():
                self._graph(i, op)
            case p.SetDevice():
                self._device = op.device
            case p.HostAsyncBegin():
                self._begin(i, op)
            case _:
                return self._on_host(call, op)
        return call

    def _on_host(self, call: Call, op: Op) -> Call:
        """Calls that issue nothing."""
        match op:
            case p.EventSync() | p.EventQuery():
                return replace(call, until=self._captures.get(op.event, ()))
            case p.StreamSync() | p.StreamQuery():
                return replace(call, until=self._held(self._queue(op.stream)))
            case p.DeviceSync():
                here = [queue for queue in self._streams.values() if queue.device == self._device]
                queues = [*here, self._legacy_of(self._device)]
                return replace(call, until=tuple(dict.fromkeys(unit for queue in queues for unit in self._held(queue))))
            case p.HostAsyncWait():
                return replace(call, until=tuple(self._agents.pop(op.id, ())))
            case p.HostRead():
                return replace(call, reads=self._allocator.place((op.range,)))
            case p.HostWrite():
                return replace(call, writes=self._allocator.place((op.range,)))
            case p.TensorAlloc():
                home = None if op.stream is None else self._queue(op.stream)
                return replace(call, until=self._allocator.take(op, home))
            case p.TensorFree():
                self._allocator.give(op, self._held)
            case p.RecordStream():
                self._allocator.use(op.buf, self._queue(op.stream))
        return call

    def _copy(self, call: Call, op: p.Memcpy) -> Call:
        rule, queue = copy_rule(op, self._program.buffers), self._queue(runs_on(op))
        source, target = self._allocator.place((op.src,)), self._allocator.place((op.dst,))
        if rule is HostRule.STAGES:
            first = self._held(queue)
            self._push(queue, call.op, call.name, writes=target)
            return replace(call, first=first, reads=source)
        unit = self._push(queue, call.op, call.name, reads=source, writes=target)
        return replace(call, until=(unit,)) if rule is HostRule.BLOCKS else call

    def _begin(self, i: int, op: p.HostAsyncBegin) -> None:
        reads, writes = p.accesses(op)
        place = self._allocator.place
        lane = self._new_lane(f"agent {op.id}")
        unit = self._add(i, lane, op.id, (), reads=place(reads), writes=place(writes))
        self._agents.setdefault(op.id, []).append(unit)

    def _graph(self, i: int, op: p.GraphLaunch) -> None:
        """The stream reaches the launch; the nodes follow it by their dependencies; the stream goes on after all."""
        queue = self._queue(op.stream)
        start = self._push(queue, i, op.name)
        armed, unclear = dict(self._captures), unclear_records(op.nodes)
        nodes: dict[str, int] = {}
        for node in topological(op.nodes):
            after = [nodes[name] for name in node.deps] or [start]
            if node.wait is not None:  # bound at the launch: a record of the same launch comes too late for it
                after += armed.get(node.wait, ())
            self._negative -= 1
            name = node.name if node.name == op.name else f"{op.name}/{node.name}"
            self._lanes[self._negative] = name
            place = self._allocator.place
            bytes_ = {"reads": place(node.reads), "writes": place(node.writes)}
            nodes[node.name] = self._add(i, self._negative, name, after, node=node.name, **bytes_)
            if node.record is not None:  # of two records that nothing orders, either may be the last
                self._captures[node.record] = (start,) if node.record in unclear else (nodes[node.name],)
        followed = {name for node in op.nodes for name in node.deps}
        self._ends(queue, tuple(unit for name, unit in nodes.items() if name not in followed) or (start,))


class _Allocator:
    """The caching allocator as a program shows it: which block a buffer lies in, and which streams it knows of."""

    def __init__(self, program: Program) -> None:
        self._block: dict[str, str] = {}
        self._home: dict[str, _Queue | None] = {}
        self._users: dict[str, list[_Queue]] = {}
        self._pending: dict[str, list[int]] = {}
        seen: set[str] = set()
        for op in program.ops:
            if isinstance(op, p.TensorFree) and op.buf not in seen and op.block is not None:
                self._block[op.buf] = op.block  # handed out before the program begins
            if isinstance(op, p.TensorAlloc | p.TensorFree):
                seen.add(op.buf)

    def place(self, ranges: Iterable[Range]) -> tuple[Bytes, ...]:
        """Where ranges lie now."""
        return tuple(Bytes(self._memory(r.buf), r) for r in ranges)

    def _memory(self, buf: str) -> str:
        block = self._block.get(buf)
        return f"buffer {buf}" if block is None else f"block {block}"

    def use(self, buf: str, queue: _Queue) -> None:
        """``record_stream``: the stream that the buffer was handed out on needs none."""
        if self._home.get(buf) is not queue:
            self._users.setdefault(buf, []).append(queue)

    def give(self, op: p.TensorFree, held: Callable[[_Queue], tuple[int, ...]]) -> None:
        """A free marks what each recorded stream holds now: the block waits for it."""
        users = self._users.pop(op.buf, [])
        block = self._block.get(op.buf)
        if block is not None:
            self._pending.setdefault(block, []).extend(unit for queue in users for unit in held(queue))

    def take(self, op: p.TensorAlloc, home: _Queue | None) -> tuple[int, ...]:
        """The buffer is handed out; returns what must have run before its block may be, and so before the host goes
        on."""
        self._home[op.buf] = home
        if op.block is None:
            return ()
        self._block[op.buf] = op.block
        self._users.pop(op.buf, None)
        return tuple(dict.fromkeys(self._pending.pop(op.block, ())))
