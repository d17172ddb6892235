"""Copies between host and device: which of them block the host, and when their bytes are read and written.

| copy | host | bytes read |
|---|---|---|
| pinned host to device, non_blocking | goes on | when the device gets there: the source must not change meanwhile |
| pageable host to device, non_blocking | stages the bytes, goes on | at the call |
| device to pinned host, non_blocking | goes on | when the device gets there: the target is old until then |
| device to pageable host, and all others | blocks until the copy has run | when the device gets there |
"""

from __future__ import annotations

from typing import Any

import torch

from refimpl.device.simulator.buffers import Access, Buffer, Memory, accesses
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.ops import Action, HostKind, Kind, Op
from refimpl.device.simulator.tensor import SimTensor


def copy(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> None:
    """Copies between any two tensors of which at least one is on the device, on the current stream."""
    if isinstance(target, SimTensor) and isinstance(source, SimTensor):
        into, out_of = target.simulated, source.simulated
        moved = into.nbytes + out_of.nbytes
        _issue("copy D2D", DEVICE.costs.kernel(moved, 0), lambda: _move(into, out_of), target, source)
    elif isinstance(target, SimTensor):
        _to_device(target, source, non_blocking)
    elif isinstance(source, SimTensor):
        _to_host(target, source, non_blocking)


def _to_device(target: SimTensor, source: torch.Tensor, non_blocking: bool) -> None:
    if not non_blocking:
        DEVICE.refuse_in_capture("a copy from the host without non_blocking=True")
    held, into = source, target.simulated
    if DEVICE.host_buffers.of(source).memory is Memory.PAGEABLE:
        held = source.clone()
        DEVICE.staging(DEVICE.costs.staging(source.nbytes))
    op = _issue("copy H2D", DEVICE.costs.copy(source.nbytes), lambda: _move(into, held), target, source)
    if not non_blocking:
        block(op)


def _to_host(target: torch.Tensor, source: SimTensor, non_blocking: bool) -> None:
    asynchronous = non_blocking and DEVICE.host_buffers.of(target).memory is Memory.PINNED
    if not asynchronous:
        DEVICE.refuse_in_capture("a copy to the host that is not to pinned memory with non_blocking=True")
    out_of = source.simulated
    op = _issue("copy D2H", DEVICE.costs.copy(source.nbytes), lambda: _move(target, out_of), target, source)
    if not asynchronous:
        block(op)


def is_pinned(tensor: torch.Tensor, device: object = None) -> bool:
    """Whether a CPU tensor lies in pinned memory."""
    buffer = DEVICE.host_buffers.known(tensor)
    return buffer is not None and buffer.memory is Memory.PINNED


def pin_memory(tensor: torch.Tensor, device: object = None) -> torch.Tensor:
    """What `tensor.pin_memory()` gives: a copy of a CPU tensor in pinned memory."""
    held = tensor.clone()
    DEVICE.host_buffers.pinned(held)
    return held


def _move(into: torch.Tensor, out_of: torch.Tensor) -> None:
    into.copy_(out_of)


def _issue(name: str, us: float, run: Action, target: torch.Tensor, source: torch.Tensor) -> Op:
    def ranges() -> tuple[tuple[Access, ...], tuple[Access, ...]]:
        return _accesses(source), _accesses(target)

    return DEVICE.launch(Kind.COPY, name, us, run, ranges)


def _accesses(tensor: torch.Tensor) -> tuple[Access, ...]:
    if isinstance(tensor, SimTensor):
        return accesses(tensor.buffer, tensor.simulated)
    return accesses(DEVICE.host_buffers.of(tensor), tensor)


def block(op: Op) -> None:
    """The host blocks until `op`, on the current stream, has run."""
    DEVICE.block(op, HostKind.STREAM_SYNCHRONIZE, queue=op.queue, cost_us=0.0)


def read_blocking(tensor: SimTensor) -> Any:
    """The value of a one-element tensor, as `.item()` gives it; the host blocks."""
    DEVICE.refuse_in_capture("reading a value on the host")
    got: list[Any] = []
    inner, scratch = tensor.simulated, Buffer(tensor.element_size(), Memory.PAGEABLE)

    def ranges() -> tuple[tuple[Access, ...], tuple[Access, ...]]:
        return accesses(tensor.buffer, inner), (Access(scratch, 0, scratch.bytes),)

    block(
        DEVICE.launch(Kind.COPY, "copy D2H", DEVICE.costs.copy(scratch.bytes), lambda: got.append(inner.item()), ranges)
    )
    return got[0]
