"""``schedule``: when each op of a program would run, by list scheduling in the order in which the host issued it.

The rules are those of the timeline component; ``refimpl/view/model/model.js`` begins with all of them. In short:

- The host takes ``us`` for its own reads, writes and work, and one call's cost for every op that it issues.
- A stream is first in, first out: an op starts when its call has returned and what the stream held has ended.
- An op of the legacy stream also starts after all blocking streams of its device, and theirs after the legacy stream.
- A record takes no time. A wait ends when the captures that were current at its call have executed.
- A synchronize, a query until success and the copies that CUDA documents as host-synchronous hold the host.
- A graph's nodes run in the order of their dependencies; a wait node takes the capture current at the launch.
- A wait for a flag ends with the earliest write of it, which may be issued later.
- Streams do not slow each other down: bandwidth and multiprocessors are not modelled.
"""

from collections.abc import Iterable, Mapping

from refimpl.order import HostRule, copy_rule, fill_rule, runs_on
from refimpl.program import Program, ProgramError, Span, SpanKind, Trace, TraceSource
from refimpl.program import ops as o
from refimpl.program.ops import label
from refimpl.timeline.blocks import Blocks
from refimpl.timeline.costs import Costs
from refimpl.timeline.graphs import NodeTask, node_tasks
from refimpl.timeline.streams import Streams
from refimpl.timeline.tasks import Task, TaskGraph


def schedule(program: Program, costs: Costs | None = None, stall: Mapping[int, float] | None = None) -> Trace:
    """When each op of the program would run, on the host and on the streams.

    One pass in issue order. The result is one legal execution, the earliest: a race may well go right in it.

    Args:
        program: what the host issued.
        costs: durations of what the program leaves open; the defaults when None.
        stall: by op index, a time in microseconds before which a stream may not start that op. A legal delay: it
            forces an order that nothing forbids.

    Returns:
        A Trace whose spans stand in issue order and carry their op's index. Graph nodes are spans of their launch's
        op.

    Raises:
        ProgramError: the program deadlocks, since a stream waits for a flag that no write can set.

    Example:
        >>> from refimpl.program import HostWork, Launch, Stream
        >>> ops = (HostWork(us=100, name="build"), Launch(stream="forward", name="verify", us=50))
        >>> [(s.name, s.start_us, s.end_us) for s in schedule(Program(streams={"forward": Stream()}, ops=ops)).spans]
        [('build', 0.0, 100.0), ('verify', 106.0, 156.0)]
    """
    return _Scheduler(program, costs or Costs(), stall or {}).run()


_Drawn = tuple[str, str, SpanKind, Task, int, float, float]
"""A span whose task may not be timed yet: lane, name, kind, task, op, submit_us, ready_us."""


class _Scheduler:
    """The state of the one pass: the host's time, each stream's tail, what each event holds."""

    def __init__(self, program: Program, costs: Costs, stall: Mapping[int, float]) -> None:
        self.program, self.costs, self.stall = program, costs, stall
        self.graph = TaskGraph()
        self.host = self.submit = 0.0
        self.index = 0
        self.streams = Streams(program)
        self.tails: dict[str, Task] = {}
        self.captures: dict[str, Task] = {}
        self.agents: dict[str, list[Task]] = {}
        self.blocks = Blocks(program)
        self.drawn: list[_Drawn] = []

    def run(self) -> Trace:
        for index, op in enumerate(self.program.ops):
            self.index = index
            self._issue(op)
        self.graph.settle()
        return Trace(self._lanes(), tuple(self._spans()), TraceSource.SCHEDULED, "computed from a cost model")

    # ── one op ──

    def _issue(self, op: o.Op) -> None:
        self.submit = self.host
        match op:
            case o.HostRead() | o.HostWrite() | o.HostWork():
                self.host += op.us or 0.0
                self._draw("host", op.name, SpanKind.HOST, self._host_task(self.submit), ready=self.submit)
            case o.SetDevice():
                self.streams.device = op.device
            case o.TensorAlloc():
                marks = self.blocks.take(op, None if op.stream is None else self.streams.lane(op.stream))
                if marks:
                    self._block(f"reuse of {op.block}", marks)
            case o.RecordStream():
                self.blocks.use(op, self.streams.lane(op.stream))
            case o.TensorFree():
                self.blocks.give_back(op, self._mark_of_allocator)
            case o.Alloc() | o.Free():
                pass
            case _:
                self.host += self.costs.call(op.op)
                self._call(op)

    def _call(self, op: o.Op) -> None:
        match op:
            case o.Launch():
                self._run(op, op.stream, self.costs.launch_us)
            case o.GraphLaunch():
                self._launch_graph(op)
            case o.Memcpy():
                self._held_run(op, self.costs.copy_us)
            case o.Memset():
                self._held_run(op, self.costs.fill_us)
            case o.EventRecord():
                self.captures[op.event] = self._mark(op, op.stream, SpanKind.RECORD)
            case o.StreamWaitEvent():
                self._mark(op, op.stream, SpanKind.WAIT, until=_known(self.captures.get(op.event)))
            case o.StreamWaitStream():
                self._mark(op, op.stream, SpanKind.WAIT, until=(self._act(self.streams.lane(op.on)),))
            case o.StreamWriteValue():
                self._mark(op, op.stream, SpanKind.RECORD, sets=op.flag)
            case o.StreamWaitValue():
                self._mark(op, op.stream, SpanKind.WAIT, awaits=op.flag)
            case o.EventSync() | o.EventQuery():
                self._block(label(op), _known(self.captures.get(op.event)))
            case o.StreamSync() | o.StreamQuery():
                self._block(label(op), (self._act(self.streams.lane(op.stream)),))
            case o.DeviceSync():
                self._block(label(op), [self.tails[lane] for lane in self.streams.of_device() if lane in self.tails])
            case o.HostAsyncBegin():
                task = self.graph.add(Task(self.host, us=_or(op.us, self.costs.agent_us)))
                self.agents.setdefault(op.id, []).append(task)
                self._draw(f"agent {op.id}", label(op), SpanKind.HOST, task)
            case o.HostAsyncWait():
                self._block(label(op), self.agents.pop(op.id, []))
            case _:
                raise self._error(f"the schedule has no rule for {op.op!r}", field="op")

    def _run(self, op: o.Op, stream: str, default_us: float) -> Task:
        lane = self.streams.lane(stream)
        return self._draw(lane, label(op), SpanKind.RUN, self._act(lane, us=_or(op.us, default_us)))

    def _mark(
        self,
        op: o.Op,
        stream: str,
        kind: SpanKind,
        until: tuple[Task, ...] = (),
        awaits: str | None = None,
        sets: str | None = None,
    ) -> Task:
        lane = self.streams.lane(stream)
        return self._draw(lane, label(op), kind, self._act(lane, until=until, awaits=awaits, sets=sets))

    def _held_run(self, op: o.Memcpy | o.Memset, default_us: float) -> None:
        """A copy or a fill, and the host held for as long as the rules for copies say."""
        buffers = self.program.buffers
        rule = copy_rule(op, buffers) if isinstance(op, o.Memcpy) else fill_rule(op, buffers)
        stream = runs_on(op)
        if rule is HostRule.STAGES:  # the write is queued only when the host has taken the source
            self._block(label(op), (self._act(self.streams.lane(stream)),))
        task = self._run(op, stream, default_us)
        if rule is HostRule.BLOCKS:
            self._block(label(op), (task,))

    def _block(self, name: str, tasks: Iterable[Task]) -> None:
        end = self.graph.ends_blocking(tasks)
        if end is None:
            raise self._error(f"the program deadlocks: {name} holds the host for good")
        ready = self.host
        self.host = max(ready, end)
        self._draw("host", name, SpanKind.BLOCKED, self._host_task(ready), ready)

    def _host_task(self, start: float) -> Task:
        return self.graph.add(Task(start, us=self.host - start))

    def _launch_graph(self, op: o.GraphLaunch) -> None:
        lane = self.streams.lane(op.stream)
        begin = self._act(lane)
        nodes: list[NodeTask] = node_tasks(op, begin, self.captures, self.costs.node_us)
        for node in nodes:
            self._draw(lane, node.name, node.kind, self.graph.add(node.task))
            if node.records is not None:
                self.captures[node.records] = node.task
        whole = op.us if op.us is not None and not any(node.task.us for node in nodes) else 0.0
        self.tails[lane] = self.graph.add(Task(0.0, us=whole, after=(begin,), until=tuple(node.task for node in nodes)))

    def _act(
        self,
        lane: str,
        us: float = 0.0,
        until: tuple[Task, ...] = (),
        awaits: str | None = None,
        sets: str | None = None,
    ) -> Task:
        """An action on a stream, behind its tail and those across the legacy barrier."""
        floor = max(self.host, self.stall.get(self.index, 0.0))
        after = self._ahead(lane)
        self.tails[lane] = self.graph.add(Task(floor, us=us, after=after, until=until, awaits=awaits, sets=sets))
        return self.tails[lane]

    def _mark_of_allocator(self, lane: str) -> Task:
        """What a stream holds when a tensor is freed; no action, so that no blocking stream waits for one on legacy."""
        return self.graph.add(Task(self.host, after=self._ahead(lane)))

    def _ahead(self, lane: str) -> tuple[Task, ...]:
        return tuple(self.tails[name] for name in self.streams.ahead_of(lane) if name in self.tails)

    # ── spans ──

    def _draw(self, lane: str, name: str, kind: SpanKind, task: Task, ready: float | None = None) -> Task:
        self.drawn.append((lane, name, kind, task, self.index, self.submit, _or(ready, self.host)))
        return task

    def _spans(self) -> list[Span]:
        for lane, name, _, task, index, *_ in self.drawn:
            self.index = index
            if not task.done and task.awaits is not None and task.missing == 0:
                why = f"stream {lane!r} stops for good at {name!r}, since no write of {task.awaits!r} can run"
                raise self._error(f"the program deadlocks: {why}")
        return [
            Span(lane, name, kind, task.start, task.end, op, submit, ready)
            for lane, name, kind, task, op, submit, ready in self.drawn
        ]

    def _error(self, why: str, field: str | None = None) -> ProgramError:
        return ProgramError(why, case=self.program.id, op=self.index, field=field)

    def _lanes(self) -> tuple[str, ...]:
        lanes = self.program.lanes
        more = tuple(dict.fromkeys(lane for lane, *_ in self.drawn if lane not in lanes))
        agents = tuple(lane for lane in lanes if lane.startswith("agent "))
        return (*(lane for lane in lanes if lane not in agents), *more, *agents)


def _or(us: float | None, default: float) -> float:
    return default if us is None else us


def _known(task: Task | None) -> tuple[Task, ...]:
    return () if task is None else (task,)
