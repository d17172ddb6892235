"""PyTorch's operators on a GPU, as a dispatch mode sees them: kernels, copies with the host's part, and blocking
reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from refimpl.device.simulator.operators.plans import Operator, aten
from refimpl.device.simulator.operators.touched import touched
from refimpl.device.stated import Touch
from refimpl.program import Mem
from refimpl.record.cells import whole
from refimpl.record.cuda_memory import lane_of
from refimpl.record.host import Operators, indices_of_host
from refimpl.record.work import Access, Buffer, HostKind, HostStep, Kind

if TYPE_CHECKING:
    from refimpl.record.tap_cuda import CudaTap


class CudaOperators(Operators):
    """Sees operators, runs them, and tells the tap what they touch.

    Args:
        tap: Takes the notes.
    """

    def __init__(self, tap: CudaTap) -> None:
        super().__init__(tap)
        self._cuda = tap

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is aten.record_stream.default:
            self._cuda.lent(self._cuda.buffer_of(args[0]), lane_of(args[1]))
            return func(*args, **(kwargs or {}))
        if func is aten.lift_fresh.default and args[0].is_cuda:
            self._made_from_numbers(args[0])
            return func(*args, **(kwargs or {}))
        return super().__torch_dispatch__(func, types, args, kwargs)

    def on_device(self, func: Any, op: Operator, args: Any, kwargs: Any) -> Any:
        """An operator that has tensors of a GPU, or makes some."""
        if (device := kwargs.get("device")) is not None and torch.device(device).type not in ("cuda", "cpu"):
            return func(*args, **kwargs)
        if func is aten._to_copy.default:
            return self._to_copy(func, args, kwargs)
        if func is aten.copy_.default:
            result = self._copied(lambda: func(*args, **kwargs), args[1], args[0])
            self._host_part(args[1], args[0], bool(args[2]) if len(args) > 2 else False)
            return result
        if func is aten._local_scalar_dense.default:
            return self._item(func, args)
        return self._launch(func, op, args, kwargs)

    def _launch(self, func: Any, op: Operator, args: Any, kwargs: Any) -> Any:
        for index in indices_of_host(op, args, self._cuda.is_on_device):
            self._index_copied(index)
        reads, writes = touched(func, op, args, kwargs, ())
        found = self._cuda.touched_by([t for t in reads if t.tensor.is_cuda], [t for t in writes if t.tensor.is_cuda])
        result = func(*args, **kwargs)
        if op.blocks or _waits_for_mask(func, op, args):
            self._cuda.work(Kind.LAUNCH, op.name, *found)
            self._cuda.blocked()
            return result
        old = {one.buffer for one in (*found[0], *found[1])}
        fresh = [access for tensor in _fresh(op, result) for access in self._whole(tensor) if access.buffer not in old]
        self._cuda.work(Kind.LAUNCH, op.name, found[0], [*found[1], *fresh])
        return result

    def _to_copy(self, func: Any, args: Any, kwargs: Any) -> Any:
        source, made = args[0], list[torch.Tensor]()

        def run() -> torch.Tensor:
            made.append(func(*args, **kwargs))
            return made[0]

        result = self._copied(run, source, None)
        self._host_part(source, result, bool(kwargs.get("non_blocking")))
        return result

    def _copied(self, run: Any, source: torch.Tensor, target: torch.Tensor | None) -> torch.Tensor:
        """Runs a copy and notes it; without a target it makes one."""
        if not source.is_cuda and not self._cuda.is_pinned(source):
            self._cuda.stepped(HostStep(HostKind.STAGING))
        if target is not None and source.shape != target.shape:
            source = source.broadcast_to(target.shape)
        writes = [] if target is None else [Touch(target)]
        read, written = self._cuda.touched_by([Touch(source)], writes)
        result: torch.Tensor = run()
        if target is None:
            written = [*written, *whole(self._cuda.buffer_of(result), result)]
        to_device = "H2D" if result.is_cuda else "D2H"
        self._cuda.work(Kind.COPY, f"copy {'D2D' if result.is_cuda and source.is_cuda else to_device}", read, written)
        return result

    def _host_part(self, source: torch.Tensor, target: torch.Tensor, non_blocking: bool) -> None:
        """Notes whether the host waited for a copy."""
        if source.is_cuda and target.is_cuda:
            return
        if not non_blocking or (source.is_cuda and not self._cuda.is_pinned(target)):
            self._cuda.blocked()

    def _index_copied(self, index: torch.Tensor) -> None:
        """The copy of a host's index tensor that indexing makes, out of every mode's sight, and waits for."""
        if not self._cuda.is_pinned(index):
            self._cuda.stepped(HostStep(HostKind.STAGING))
        scratch = Buffer(index.nbytes, Mem.DEVICE)
        source = whole(self._cuda.buffer_of(index), index)
        self._cuda.work(Kind.COPY, "copy H2D", source, [Access(scratch, 0, scratch.bytes)])
        self._cuda.blocked()

    def _item(self, func: Any, args: Any) -> Any:
        reads, _ = self._cuda.touched_by([Touch(args[0])], [])
        value = func(*args)
        self._to_host(reads, args[0].element_size())
        return value

    def _to_host(self, reads: Any, bytes_: int) -> None:
        scratch = Buffer(bytes_, Mem.PAGEABLE)
        self._cuda.work(Kind.COPY, "copy D2H", reads, [Access(scratch, 0, bytes_)])
        self._cuda.blocked()

    def _made_from_numbers(self, tensor: torch.Tensor) -> None:
        """`torch.tensor([…], device="cuda")`, whose copy from the host PyTorch makes out of every mode's sight."""
        writes = self._whole(tensor)
        if writes:
            scratch = Buffer(tensor.nbytes, Mem.PAGEABLE)
            self._cuda.stepped(HostStep(HostKind.STAGING))
            self._cuda.work(Kind.COPY, "copy H2D", [Access(scratch, 0, scratch.bytes)], writes)
            self._cuda.blocked()

    def _whole(self, tensor: torch.Tensor) -> tuple[Access, ...]:
        return whole(self._cuda.buffer_of(tensor), tensor) if tensor.is_cuda else ()


def _fresh(op: Operator, result: Any) -> Iterable[torch.Tensor]:
    """The tensors among the results that are no arguments."""
    results = (result,) if len(op.returned) == 1 else tuple(result) if op.returned else ()
    for alias, value in zip(op.returned, results, strict=True):
        if alias is None:
            yield from (t for t in (value if isinstance(value, (list, tuple)) else [value]) if _is_tensor(t))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _waits_for_mask(func: Any, op: Operator, args: Any) -> bool:
    """Whether indexing counts what a mask names, which the host waits for; a masked fill does not."""
    if not op.masked:
        return False
    indices = [t for t in args[1] if t is not None]
    if not any(t.dtype in (torch.bool, torch.uint8) for t in indices):
        return False
    fills = func is not aten.index.Tensor and len(indices) == 1 and args[2].numel() == 1
    return not fills
