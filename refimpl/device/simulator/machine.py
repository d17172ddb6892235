"""The simulated GPU: a host clock, queues of ops, and a schedule that says when they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import TYPE_CHECKING

import torch

from refimpl.device.simulator.capture import Capture
from refimpl.device.simulator.costs import CostModel
from refimpl.device.simulator.memory.allocator import DeviceMemory
from refimpl.device.simulator.memory.buffers import HostBuffers
from refimpl.device.simulator.memory.pinned import PinnedMemory
from refimpl.device.simulator.operators import execution
from refimpl.device.simulator.ops import (
    Action,
    HostKind,
    HostStep,
    Kind,
    Observer,
    Op,
    Queue,
    SyncDebug,
)
from refimpl.device.simulator.pool import StreamPool
from refimpl.device.simulator.regions import Region
from refimpl.device.simulator.schedules.decisions import Unnoted
from refimpl.device.simulator.schedules.run import Run
from refimpl.device.simulator.schedules.runner import Runner
from refimpl.device.simulator.schedules.timed import Timed

if TYPE_CHECKING:
    from refimpl.device.simulator.operators.touched import Ranges


class Machine:
    """All the state there is: PyTorch has one device of a kind, so there is one machine, `DEVICE`.

    Attributes:
        runs: Those that have begun and not ended, the innermost last, each with what goes back to before it.
    """

    def __init__(self) -> None:
        self.queues: dict[int, Queue] = {0: Queue(0)}
        self.current = self.queues[0]
        self.host_us = 0.0
        self.observers: list[Observer] = []
        self.capture: Capture | None = None
        self.host_buffers = HostBuffers()
        self.memory, self.pinned = DeviceMemory(self), PinnedMemory(self, self.host_buffers)
        self.streams, self.generator = StreamPool(), torch.Generator()
        self.sync_debug = SyncDebug.DEFAULT
        self.runs: dict[Run, ExitStack] = {}
        self._region: Region | None = None
        self._seqs, self._lanes, self._launches = count(), count(-1, -1), count(1)
        self.adopt(Run(Timed(), Unnoted()))

    run: Run
    runner: Runner
    costs: CostModel

    def adopt(self, run: Run) -> None:
        """Goes on under another run, with queues that are empty."""
        self.run, self.runner, self.costs = run, run.runner, run.costs
        for queue in self.queues.values():
            queue.clock, queue.tail, queue.lane = 0.0, None, 0

    @property
    def resolving(self) -> bool:
        """Every queued op has its duration: no cost region is open that is still to share out its own."""
        return self._region is None or not self._region.pending

    @property
    def open_region(self) -> Region | None:
        """The innermost cost region that is open now."""
        return self._region

    @property
    def observed(self) -> bool:
        """Somebody asks which bytes an op touches: an observer, or a graph for those of its launches."""
        return bool(self.observers) or self.capture is not None

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
        ranges: Callable[[], Ranges] | None = None,
        make: Callable[[], Action] | None = None,
    ) -> Op:
        """Issues one op on the current stream, and charges the host for the launch."""
        op = Op(kind, name, self.current, us, run, make)
        if ranges is not None and self.observed:
            op.reads, op.writes = ranges()
        self.host_us += self.costs.launch(name)
        return self.issue(op)

    def issue(self, op: Op) -> Op:
        """Puts an op in its queue, or into the graph under capture; one call of the host."""
        if self.enqueue(op):
            self.runner.progress(self)
        return op

    def enqueue(self, op: Op) -> bool:
        """Puts an op in its queue, as a part of a call of the host; False if it went into the graph under capture."""
        op.seq = next(self._seqs)
        if self._region is not None:
            self._region.take(op)
        if self.capture is not None and self.capture.takes(op):
            self.capture.add(op)
            return False
        op.submit_us = self.host_us
        self._bind(op, op.queue)
        self.run.decisions.issued(op)
        self.runner.issue(op)
        for observer in self.observers:
            observer.on_issue(op)
        return True

    def _bind(self, op: Op, queue: Queue) -> None:
        """Ties an op to the one before it in its queue and drops what has run, so that no chain of past ops is kept."""
        if not queue.lane:
            self.run.number(queue)
        tail = queue.tail
        if tail is not None and not tail.done:
            op.previous = tail
        if op.after:
            op.after = tuple([other for other in op.after if not other.done])
        queue.tail = op

    def execute(self, op: Op) -> None:
        """Runs an op whose times the schedule has set."""
        execution.execute(op, self.run)
        self._complete(op)

    def execute_piece(self, op: Op, piece: int, pieces: int) -> None:
        """Does one of the pieces of an op, in turn from 0; it has run after the last."""
        execution.execute_piece(op, piece, pieces, self.run)
        if op.done:
            self._complete(op)

    def _complete(self, op: Op) -> None:
        op.run, op.landing = None, None
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
        self.refuse_in_capture(kind.words)
        start = self.host_us
        self.host_us += self.costs.synchronize_us if cost_us is None else cost_us
        self._wait_for([] if op is None else [op])
        self._tell(HostStep(kind, start, self.host_us, queue, event, op))

    def ask(self, op: Op | None, kind: HostKind, queue: Queue | None = None, event: object = None) -> bool:
        """The host asks whether `op` has run, and goes on."""
        self.refuse_in_capture(kind.words)
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
        self.synchronize_with([queue.tail for queue in self.queues.values() if queue.tail is not None])

    def synchronize_with(self, ops: Sequence[Op]) -> None:
        """The host blocks until `ops`, which are all that is queued, have run."""
        start = self.host_us
        self.host_us += self.costs.synchronize_us
        self._wait_for(ops)
        self._tell(HostStep(HostKind.DEVICE_SYNCHRONIZE, start, self.host_us))

    def _wait_for(self, ops: Sequence[Op]) -> None:
        """The host is blocked until all of `ops` have run; one call of the host, also where they have."""
        ahead = [op for op in ops if not op.done]
        if not ahead:
            self.runner.progress(self)
            return
        self._settle()
        called_us = self.host_us
        self.runner.finish(ahead, self)
        if self.host_us > called_us:
            self.host_us += self.costs.wake_us

    def replay(self, capture: Capture) -> None:
        """Launches a captured graph on the current stream: its nodes run on the same memory, each branch as a queue
        of its own."""
        self.host_us += self.costs.graph(len(capture.nodes))
        launch = next(self._launches)
        ops = capture.instantiate(self.current, lambda: Queue(next(self._lanes)))
        for op in ops:
            op.launch = launch
        for observer in self.observers:
            observer.on_graph(capture, self.current, ops)
        issued = [self.enqueue(op) for op in ops]
        if any(issued):
            self.runner.progress(self)

    def refuse_in_capture(self, what: str) -> None:
        """Raises where CUDA would: the host cannot wait for work that is only being captured."""
        if self.capture is not None:
            self.capture.broken_by = what
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
    def region(self, name: str, us: float | None, scale: float) -> Iterator[Region]:
        """Names the ops issued inside, and sets what they cost."""
        self.host_us += self.costs.region_us
        outer = self._region
        self._region = region = Region(name, us, scale, outer)
        try:
            yield region
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


DEVICE = Machine()
