"""`record`: what running code did on a device, as a program and as a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch

from refimpl import device as devices
from refimpl.program import Buffer, Op, Program, Stream, Trace, TraceSource, Verdict
from refimpl.record.entries import region_of
from refimpl.record.names import Names
from refimpl.record.programs import Lowering
from refimpl.record.tap import Tap
from refimpl.record.traces import spans

_open: list[Recording] = []


class Recording:
    """What was recorded; names may be given while it runs or afterwards.

    It stands for its program wherever one is asked for: `check(recording)`, `recording.ops`.

    Args:
        tap: What takes notes on the device.
    """

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._names = Names(tap.key_of)
        self._start_us = tap.clock_us()
        self._whole: tuple[int, Program] | None = None
        self._named = 0

    def name(self, thing: Any, name: str) -> None:
        """Names a stream, an event, a captured graph, or the memory that a tensor lies in.

        Raises:
            TypeError: Something else, or a name that is no text.
            ValueError: Another thing has the name, or it belongs to another lane.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"recording.name(…, {name!r}): a name is a text that is not empty")
        self._names.give(thing, name)
        self._whole = None

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
        ops = tuple(_with_param(op, params) for op, _ in Lowering(self._tap.entries, names).ops())
        return Program(
            ops=ops, streams=names.streams, buffers=names.buffers, id=id, source=self._tap.source, words=words
        )

    def trace(self) -> Trace:
        """When it ran, in virtual microseconds from the recording's beginning; `op` points into `program().ops`.

        Raises:
            RuntimeError: The device is a GPU.
        """
        if self._start_us is None:
            raise RuntimeError(
                "recording.trace(): a recording on a GPU has no times: "
                "run it again under torch.profiler, and read that with refimpl.timeline"
            )
        names = self._names.fresh()
        found = spans(Lowering(self._tap.entries, names).ops(), names, self._start_us)
        return Trace(self.program().lanes, tuple(found), TraceSource.SIMULATED, "simulated device")

    @property
    def regions(self) -> tuple[str | None, ...]:
        """For each op of the program, the name of the innermost region (`dev.cost(name)`) that it was issued in; None
        outside, and for what the host does itself."""
        return tuple(region_of(entry) for _, entry in Lowering(self._tap.entries, self._names.fresh()).ops())

    @property
    def joined(self) -> Mapping[str, tuple[str, ...]]:
        """By name of each buffer of the program that stands for several, which had its bytes one after another: the
        given names of those."""
        names = self._names.fresh()
        lowering = Lowering(self._tap.entries, names)
        lowering.ops()  # which takes the names in the program's order
        return lowering.joined()

    @property
    def widened(self) -> tuple[str, ...]:
        """Where the program counts in bytes that were not touched, since the cells of an index were too many to keep
        apart, or were never looked up: op, buffer, and call site. Also each buffer of which a use that `record_stream`
        covers is not held against the former owners of its memory, so that a race with them would be missed."""
        return Lowering(self._tap.entries, self._names.fresh()).widened()

    @property
    def ops(self) -> tuple[Op, ...]:
        """The program's ops."""
        return self._program.ops

    @property
    def streams(self) -> Mapping[str, Stream]:
        """The program's streams, by name."""
        return self._program.streams

    @property
    def buffers(self) -> Mapping[str, Buffer]:
        """The program's buffers, by name."""
        return self._program.buffers

    @property
    def lanes(self) -> tuple[str, ...]:
        """The program's lanes, as drawn."""
        return self._program.lanes

    @property
    def id(self) -> str:
        """The program's name."""
        return self._program.id

    @property
    def suite(self) -> str:
        """Empty: a recording belongs to no suite."""
        return self._program.suite

    @property
    def source(self) -> str:
        """Where the program comes from."""
        return self._program.source

    @property
    def words(self) -> str:
        """What it shows; empty."""
        return self._program.words

    @property
    def expect(self) -> Verdict | None:
        """None: a recording has no known verdict."""
        return self._program.expect

    @property
    def disputed(self) -> bool:
        """False."""
        return self._program.disputed

    @property
    def racing_ops(self) -> tuple[tuple[int, int], ...]:
        """None are known."""
        return self._program.racing_ops

    @property
    def _program(self) -> Program:
        """The program as it is now, kept while nothing is added to it."""
        noted = len(self._tap.entries)
        if self._whole is None or self._whole[0] != noted or self in _open:
            self._whole = (noted, self.program())
        return self._whole[1]


def _with_param(op: Op, params: Mapping[str, str]) -> Op:
    param = params.get(getattr(op, "name", ""))
    return op if param is None else replace(op, param=param)


@contextmanager
def record(device: str | torch.device | None = None) -> Iterator[Recording]:
    """Records what the code inside does on a device, without changing it; the device is empty before and after.

    The host synchronizes with the device on entry: an op that was queued earlier and ran among those recorded would be
    no part of the program, and its races would be missed. A recording keeps no memory of the device alive, so the
    allocator hands blocks on as it would without.

    What the host does with a tensor of its own is seen where PyTorch is called: not what NumPy, or who else was given
    the memory, reads and writes there later (`h.numpy()`, `torch.from_numpy(…)`, `h.untyped_storage()`). Give such code
    a tensor of its own, or read through PyTorch.

    On a GPU each operator costs more host time, so measure in another run. A graph is known if it was captured in a
    recording, this one or an earlier one; on the simulated device it always is.

    Args:
        device: "cuda" or "sim"; None for the best one here.
    Raises:
        RuntimeError: A recording is open already, or there is no such device.
    Order:
        The host blocks on entry and on exit until the device is idle.
    Example:
        >>> import refimpl, torch
        >>> with refimpl.record("sim") as program:
        ...     x = torch.zeros(4, device="sim")
        >>> [op.op for op in program.ops]
        ['launch']
    """
    if _open:
        raise RuntimeError("record(): a recording is open already, and two cannot look on at once: close it first")
    tap = _tap_of(devices.best() if device is None else device)
    recording = Recording(tap)
    _open.append(recording)
    try:
        with tap.attached():
            recording._start_us = tap.clock_us()
            yield recording
    finally:
        _open.remove(recording)


def _tap_of(device: str | torch.device) -> Tap:
    if not isinstance(device, str | torch.device):
        raise TypeError(f"record({device!r}): name a device, 'cuda' or 'sim'")
    devices.get(device)
    if torch.device(device).type == "sim":
        from refimpl.record.tap_sim import SimTap

        return SimTap()
    from refimpl.record.tap_cuda import CudaTap

    return CudaTap(torch.device(device))
