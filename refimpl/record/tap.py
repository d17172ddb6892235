"""The tap on a simulated device: it notes what is issued, what the host does, and what the host reads and writes."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from refimpl.device.simulator.buffers import Buffer, accesses
from refimpl.device.simulator.capture import Capture
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.ops import HostStep, Kind, Observer, Op, Queue
from refimpl.device.simulator.plans import operator, written_and_read
from refimpl.device.simulator.tensor import SimTensor
from refimpl.record.entries import Called, Entry, Issued, Launched, Stepped, Touched

_MACHINERY = ("torch", "refimpl.device", "refimpl.record", "contextlib")
_READ_IN_PLACE = (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__)


class Tap(Observer):
    """Collects entries in the order in which the host made the calls.

    Attributes:
        entries: What was noted.
        step: Iteration of the loop, as the recorded code tells it.
        allocated: Device memory allocated meanwhile.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.step: int | None = None
        self.allocated: set[Buffer] = set()

    def on_issue(self, op: Op) -> None:
        """Notes an op; ops of one cost region in a row are one entry."""
        if op.launch is not None:
            return
        last = self.entries[-1] if self.entries else None
        if isinstance(last, Issued) and one_region(last.ops[-1], op):
            self.entries[-1] = Issued((*last.ops, op), last.called)
        else:
            self.entries.append(Issued((op,), self.called()))

    def on_graph(self, capture: Capture, queue: Queue, ops: list[Op]) -> None:
        """Notes a launch of a graph, with the order of its nodes while it is still known."""
        last: dict[Queue, Op] = {}
        after = []
        for op in ops:
            before = (*op.after, *([last[op.queue]] if op.queue in last else []))
            after.append(before)
            last[op.queue] = op
        self.entries.append(Launched(capture, queue, tuple(ops), tuple(after), self.called()))

    def on_host(self, step: HostStep) -> None:
        """Notes what the host did."""
        self.entries.append(Stepped(step, self.called()))

    def on_allocate(self, buffer: Buffer) -> None:
        """Notes memory that is new in the recording."""
        self.allocated.add(buffer)

    def touch(self, tensor: torch.Tensor, writes: bool) -> None:
        """Notes an access of the host, where the device copies from or to that memory."""
        buffer = DEVICE.host_buffers.known(tensor)
        if buffer is not None:
            called = self.called()
            self.entries += [Touched(access, writes, DEVICE.host_us, called) for access in accesses(buffer, tensor)]

    def called(self) -> Called:
        """The innermost frame that is neither PyTorch's nor ours."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").startswith(_MACHINERY):
            outer = frame.f_back
            if outer is None:
                return Called(None, self.step)
            frame = outer
        name = PurePath(frame.f_code.co_filename).name
        return Called(f"{name}:{frame.f_lineno} ({frame.f_code.co_name})", self.step)


def one_region(first: Op, second: Op) -> bool:
    """Whether two ops in a row are parts of one named step."""
    work = (Kind.LAUNCH, Kind.COPY)
    both = first.kind in work and second.kind in work
    return both and first.region is not None and first.region is second.region and first.queue is second.queue


class HostOps(TorchDispatchMode):
    """Sees operators on host tensors alone; those that touch the device are the device's to report."""

    def __init__(self, tap: Tap) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tap = tap

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        op = operator(func)
        quiet = op.view or op.reshapes or op.allocates or func is torch.ops.aten.is_pinned.default
        if not quiet and not _to_device(kwargs):
            written, read = written_and_read(op, args, kwargs)
            if not any(isinstance(t, SimTensor) for t in (*written, *read)):
                for tensor in read:
                    self._tap.touch(tensor, writes=False)
                for tensor in written:
                    self._tap.touch(tensor, writes=True)
        return func(*args, **kwargs)


def _to_device(kwargs: Any) -> bool:
    """Whether an operator copies to the device, which then reads the source."""
    device = kwargs.get("device")
    return device is not None and torch.device(device).type == "sim"


class HostReads(TorchFunctionMode):
    """Sees the reads of host tensors that are no operators, such as `tolist`."""

    def __init__(self, tap: Tap) -> None:
        super().__init__()
        self._tap = tap

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _READ_IN_PLACE and not isinstance(args[0], SimTensor):
            self._tap.touch(args[0], writes=False)
        return func(*args, **(kwargs or {}))
