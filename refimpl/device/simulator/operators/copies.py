"""Copies between host and device: which of them block the host, and when their bytes are read and written.

| copy | host | bytes read |
|---|---|---|
| pinned host to device, non_blocking | goes on | when the device gets there: the source must not change meanwhile |
| pageable host to device, non_blocking | stages the bytes, goes on | at the call |
| device to pinned host, non_blocking | goes on | when the device gets there: the target is old until then |
| device to pageable host, and all others | blocks until the copy has run | when the device gets there |

PyTorch copies a host tensor that is not contiguous through a temporary, in pageable memory: so what is strided or
expanded counts as pageable, unless both tensors are dense, of one type and of the same strides.

Source: pytorch `aten/src/ATen/native/cuda/Copy.cu`, `copy_requires_temporaries` and `copy_kernel_cuda`.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch

from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.memory.buffers import Access, Buffer, Memory
from refimpl.device.simulator.operators.effects import Move
from refimpl.device.simulator.operators.touched import Ranges, ranges_of
from refimpl.device.simulator.ops import Action, HostKind, Kind, Op, SyncDebug
from refimpl.device.simulator.tensor import SimTensor
from refimpl.device.stated import Touch


def copy(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> None:
    """Copies between any two tensors of which at least one is on the device, on the current stream."""
    if isinstance(target, SimTensor) and isinstance(source, SimTensor):
        into, out_of = target.simulated, source.simulated
        moved = into.nbytes + out_of.nbytes
        _issue("copy D2D", DEVICE.costs.kernel(moved, 0), Move(into, out_of), target, source)
    elif isinstance(target, SimTensor):
        _to_device(target, source, non_blocking)
    elif isinstance(source, SimTensor):
        _to_host(target, source, non_blocking)


def _to_device(target: SimTensor, source: torch.Tensor, non_blocking: bool) -> None:
    if source.is_meta:
        raise NotImplementedError("sim: a copy of a meta tensor, which has no values: make one on sim with empty_like")
    into, buffer = target.simulated, DEVICE.host_buffers.of(source)
    staged = buffer.memory is Memory.PAGEABLE or _through_temporary(source, target)
    if not non_blocking or staged:
        DEVICE.refuse_in_capture(
            "a copy from the host that is not from contiguous pinned memory with non_blocking=True"
        )
    if staged:
        held = source.clone()
        DEVICE.staging(DEVICE.costs.staging(source.nbytes))
    else:
        held = DEVICE.pinned.lend(source, buffer, non_blocking)
    op = _issue("copy H2D", DEVICE.costs.h2d(source.nbytes), Move(into, held), target, source)
    if not non_blocking:
        block(op)


def _to_host(target: torch.Tensor, source: SimTensor, non_blocking: bool) -> None:
    buffer = DEVICE.host_buffers.of(target)
    asynchronous = non_blocking and buffer.memory is Memory.PINNED and not _through_temporary(target, source)
    if not asynchronous:
        DEVICE.refuse_in_capture("a copy to the host that is not to contiguous pinned memory with non_blocking=True")
    out_of, into = source.simulated, DEVICE.pinned.lend(target, buffer, asynchronous)
    op = _issue("copy D2H", DEVICE.costs.d2h(source.nbytes), Move(into, out_of), target, source)
    if not asynchronous:
        block(op)


def _through_temporary(host: torch.Tensor, other: SimTensor) -> bool:
    """Whether PyTorch puts a contiguous temporary between a host tensor and the device."""
    if host.is_contiguous():
        return False
    alike = host.dtype == other.dtype and host.stride() == other.stride()
    return not (alike and torch.ops.aten.is_non_overlapping_and_dense.default(host))


def is_pinned(tensor: torch.Tensor, device: object = None) -> bool:
    """Whether a CPU tensor lies in pinned memory."""
    buffer = DEVICE.host_buffers.known(tensor)
    return buffer is not None and buffer.memory is Memory.PINNED


def pin_memory(tensor: torch.Tensor, device: object = None) -> torch.Tensor:
    """What `tensor.pin_memory()` gives: a copy of a CPU tensor in pinned memory."""
    return DEVICE.pinned.copy_of(tensor)


def _issue(name: str, us: float, run: Action, target: torch.Tensor, source: torch.Tensor) -> Op:
    def ranges() -> Ranges:
        return ranges_of([Touch(source)], [Touch(target)])

    return DEVICE.launch(Kind.COPY, name, us, run, ranges)


def block(op: Op) -> None:
    """The host blocks until `op`, on the current stream, has run: an operator or a copy does not say that it waits, so
    `set_sync_debug_mode` may have it warn or raise."""
    if DEVICE.sync_debug is not SyncDebug.DEFAULT:
        _tell_of_wait(op.name)
    DEVICE.block(op, HostKind.STREAM_SYNCHRONIZE, queue=op.queue, cost_us=0.0)


def _tell_of_wait(name: str) -> None:
    words = f"sim: {name} makes the host wait, of which set_sync_debug_mode({DEVICE.sync_debug.value!r}) tells"
    if DEVICE.sync_debug is SyncDebug.ERROR:
        raise RuntimeError(words)
    warnings.warn(words, stacklevel=2)


def read_blocking(tensor: SimTensor) -> Any:
    """The value of a one-element tensor, as `.item()` gives it; the host blocks."""
    DEVICE.refuse_in_capture("reading a value on the host")
    got: list[Any] = []
    inner, scratch = tensor.simulated, Buffer(tensor.element_size(), Memory.PAGEABLE)

    def ranges() -> Ranges:
        return ranges_of([Touch(tensor)], [])[0], (Access(scratch, 0, scratch.bytes),)

    block(
        DEVICE.launch(Kind.COPY, "copy D2H", DEVICE.costs.d2h(scratch.bytes), lambda: got.append(inner.item()), ranges)
    )
    return got[0]
