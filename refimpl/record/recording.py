"""`record`: what running code did on a device, as a program and as a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch

from refimpl.device import get
from refimpl.device.simulator.machine import DEVICE
from refimpl.program import Op, Program, Trace, TraceSource
from refimpl.record.names import Names
from refimpl.record.programs import lower
from refimpl.record.tap import HostOps, HostReads, Tap
from refimpl.record.traces import spans


class Recording:
    """What was recorded; names may be given while it runs or afterwards."""

    def __init__(self) -> None:
        self._tap = Tap()
        self._names = Names()
        self._start_us = DEVICE.host_us

    @property
    def tap(self) -> Tap:
        """What the device talks to."""
        return self._tap

    def name(self, thing: Any, name: str) -> None:
        """Names a stream, an event, a captured graph, or the memory that a tensor lies in."""
        self._names.give(thing, name)

    def step(self, number: int | None) -> None:
        """Tells which iteration of the loop follows; every op carries it."""
        self._tap.step = number

    def program(
        self, id: str = "recording", words: str = "", params: Mapping[str, str] = MappingProxyType({})
    ) -> Program:
        """The stream program: what each lane did, in the order in which the host issued it.

        Args:
            id: The program's name.
            words: What it shows.
            params: Per name of an op, the duration parameter that its time comes from, for a timeline that can be
                dragged.
        """
        names = self._names.fresh()
        ops = tuple(_with_param(op, params) for op, _ in lower(self._tap.entries, names, self._tap.allocated))
        return Program(
            ops=ops, streams=names.streams, buffers=names.buffers, id=id, source="recorded on sim", words=words
        )

    def trace(self) -> Trace:
        """When it ran, in virtual microseconds from the recording's beginning; `op` points into `program().ops`."""
        names = self._names.fresh()
        found = spans(lower(self._tap.entries, names, self._tap.allocated), names, self._start_us)
        return Trace(self.program().lanes, tuple(found), TraceSource.SIMULATED, "simulated device")


def _with_param(op: Op, params: Mapping[str, str]) -> Op:
    param = params.get(getattr(op, "name", ""))
    return op if param is None else replace(op, param=param)


@contextmanager
def record(device: str | torch.device = "sim") -> Iterator[Recording]:
    """Records what the code inside does on `device`, without changing it; the device is empty before and after.

    The host synchronizes with the device on entry: an op that was queued earlier and ran among those recorded would be
    no part of the program, and its races would be missed.

    Raises:
        NotImplementedError: `device` is not the simulated one.
    """
    if torch.device(device).type != "sim":
        raise NotImplementedError(f"record({device!r}): only sim can be recorded, so run the same code on sim")
    dev = get("sim")
    dev.synchronize()
    recording = Recording()
    with dev.observe(recording.tap), HostOps(recording.tap), HostReads(recording.tap):
        yield recording
    dev.synchronize()
