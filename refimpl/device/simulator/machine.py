"""The simulated GPU: a host clock, queues of ops, and a schedule that says when they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import torch
from torch.utils._python_dispatch import _disable_current_modes

from refimpl.device.simulator.buffers import Access, HostBuffers
from refimpl.device.simulator.capture import Capture
from refimpl.device.simulator.costs import CostModel
from refimpl.device.simulator.ops import Action, HostKind, HostStep, Kind, Observer, Op, Queue
from refimpl.device.simulator.regions import Region
from refimpl.device.simulator.schedules import Runner, Schedule, Timed

Ranges = Callable[[], tuple[tuple[Access, ...], tuple[Access, ...]]]


class Machine:
    """All the state there is: PyTorch has one device of a kind, so there is one machine, `DEVICE`."""

    def __init__(self) -> None:
        self.queues: dict[int, Queue] = {0: Queue(0)}
        self.current = self.queues[0]
        self.host_us = 0.0
        self.observers: list[Observer] = []
        self.capture: Capture | None = None
        self.host_buffers = HostBuffers()
        self.generator = torch.Generator()
        self._region: Region | None = None
        self._seqs, self._lanes, self._launches = count(), count(-1, -1), count(1)
        self.adopt(Timed())

    def adopt(self, schedule: Schedule) -> None:
        """Begins a new run of `schedule` at time zero; the device must be idle."""
        self.schedule, self.costs = schedule, schedule.costs
        self.runner: Runner = schedule.start()
        self.host_us = 0.0
        for queue in self.queues.values():
            queue.clock, queue.tail = 0.0, None

    costs: CostModel
    schedule: Schedule

    @property
    def resolving(self) -> bool:
        """Every queued op has its duration: no cost region is open that is still to share out its own."""
        return self._region is None or not self._region.pending

    def queue(self, id_: int) -> Queue:
        """The queue of a stream's id; it begins at the time at which it is first used."""
        return self.queues.setdefault(id_, Queue(id_))

    def tick(self, us: float) -> None:
        """The host spends time; what the device has finished by then has landed."""
        self.host_us += us
        self.runner.progress(self)

    def work(self, us: float) -> None:
        """The host works for `us`."""
        start = self.host_us
        self.tick(us)
        self._tell(HostStep(HostKind.WORK, start, self.host_us))

    def launch(
        self,
        kind: Kind,
        name: str,
        us: float,
        run: Action | None,
        ranges: Ranges | None = None,
        make: Callable[[], Action] | None = None,
    ) -> Op:
        """Issues one op on the current stream, and charges the host for the launch."""
        op = Op(kind, name, self.current, us, run, make)
        if ranges is not None and (self.observers or self.capture is not None):
            op.reads, op.writes = ranges()
        self.host_us += self.costs.launch_us
        return self.issue(op)

    def issue(self, op: Op) -> Op:
        """Puts an op in its queue, or into the graph under capture."""
        op.seq = next(self._seqs)
        if self._region is not None:
            self._region.take(op)
        if self.capture is not None and self.capture.takes(op):
            self.capture.add(op)
            return op
        self._bind(op)
        self.runner.issue(op)
        for observer in self.observers:
            observer.on_issue(op)
        self.runner.progress(self)
        return op

    def _bind(self, op: Op) -> None:
        """Ties an op to the one before it in its queue and drops what has run, so that no chain of past ops is kept."""
        queue = op.queue
        op.submit_us = self.host_us
        op.previous = queue.tail if queue.tail is not None and not queue.tail.done else None
        if op.after:
            op.after = tuple([other for other in op.after if not other.done])
        queue.tail = op

    def execute(self, op: Op) -> None:
        """Runs an op whose times the schedule has set."""
        op.done = True
        if op.run is not None:
            try:
                _undisturbed(op.run)
            except NotImplementedError as error:
                raise NotImplementedError(
                    f"sim: {op.name} is not supported: PyTorch has no CPU kernel for it, so use other operators"
                ) from error
            except Exception as error:
                raise RuntimeError(
                    f"sim: {op.name} failed on stream {op.queue.id} when it ran, after it was issued: {error}"
                ) from error
            finally:
                op.run = None
        for observer in self.observers:
            observer.on_done(op)
        op.previous, op.after = None, ()

    def block(
        self,
        op: Op | None,
        kind: HostKind,
        queue: Queue | None = None,
        event: object = None,
        cost_us: float | None = None,
    ) -> None:
        """The host blocks until `op` has run."""
        self.refuse_in_capture(kind.value)
        start = self.host_us
        self.host_us += self.costs.synchronize_us if cost_us is None else cost_us
        if op is not None and not op.done:
            self._settle()
            self.runner.finish(op, self)
        self.runner.progress(self)
        self._tell(HostStep(kind, start, self.host_us, queue, event, op))

    def ask(self, op: Op | None, kind: HostKind, queue: Queue | None = None, event: object = None) -> bool:
        """The host asks whether `op` has run, and goes on."""
        self.refuse_in_capture(kind.value)
        start = self.host_us
        self.host_us += self.costs.query_us
        if op is not None and not op.done:
            self._settle()
            self.runner.poll(op, self)
        success = op is None or op.done
        self._tell(HostStep(kind, start, self.host_us, queue, event, op, success))
        return success

    def synchronize(self) -> None:
        """The host blocks until every queue is empty."""
        self.refuse_in_capture("synchronize")
        start = self.host_us
        self.host_us += self.costs.synchronize_us
        self._settle()
        for queue in list(self.queues.values()):
            if queue.tail is not None and not queue.tail.done:
                self.runner.finish(queue.tail, self)
        self.runner.progress(self)
        self._tell(HostStep(HostKind.DEVICE_SYNCHRONIZE, start, self.host_us))

    def replay(self, capture: Capture) -> None:
        """Launches a captured graph on the current stream: its nodes run on the same memory, each branch as a queue
        of its own."""
        self.host_us += self.costs.graph_launch_us
        launch = next(self._launches)
        ops = capture.instantiate(self.current, lambda: Queue(next(self._lanes)))
        for op in ops:
            op.launch = launch
        for observer in self.observers:
            observer.on_graph(capture, self.current, ops)
        for op in ops:
            self.issue(op)

    def refuse_in_capture(self, what: str) -> None:
        """Raises where CUDA would: the host cannot wait for work that is only being captured."""
        if self.capture is not None:
            raise RuntimeError(
                f"sim: {what} in a graph capture: captured work does not run until the replay, so end the capture first"
            )

    def _tell(self, step: HostStep) -> None:
        for observer in self.observers:
            observer.on_host(step)

    def staging(self, us: float) -> None:
        """The host stages pageable memory for a copy."""
        start = self.host_us
        self.tick(us)
        self._tell(HostStep(HostKind.STAGING, start, self.host_us))

    @contextmanager
    def region(self, name: str, us: float | None, scale: float) -> Iterator[None]:
        """Names the ops issued inside, and sets what they cost."""
        outer = self._region
        self._region = region = Region(name, us, scale, outer)
        try:
            yield
        finally:
            rest_us = region.close()
            self._region = outer
            if rest_us:
                self.issue(Op(Kind.LAUNCH, name, self.current, rest_us))
            self.runner.progress(self)

    def _settle(self) -> None:
        """The host blocks inside a cost region: what it has issued so far keeps the cost model's durations."""
        if self._region is not None:
            self._region.settle()


def _undisturbed(run: Action) -> None:
    """Runs device work apart from what the host is in the middle of: autograd, inference mode, dispatch modes."""
    with torch._C._AutoDispatchBelowADInplaceOrView():
        if torch._C._len_torch_dispatch_stack():
            with _disable_current_modes():
                run()
        else:
            run()


DEVICE = Machine()
