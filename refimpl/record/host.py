"""What the host does with its own tensors, on either device: reads and writes of memory that the device copies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from refimpl.device.simulator.operators.plans import Operator, is_masked_fill, operator, written_and_read
from refimpl.record.tap import Tap

aten = torch.ops.aten
_PRINTS = (torch.Tensor.__repr__, torch.Tensor.__format__)
_READ_IN_PLACE = (
    *_PRINTS,
    torch.Tensor.tolist,
    torch.Tensor.numpy,
    torch.Tensor.__array__,
    torch.Tensor.__dlpack__,
)
_ASKING = (aten.is_pinned.default,)
_PICKLING = "_typed_storage"
_COPIES = (aten.copy_.default, aten._to_copy.default)


class Operators(TorchDispatchMode):
    """Sees every operator; those on host tensors alone are accesses of the host, others are the device's to report.

    Args:
        tap: Takes the notes.
    """

    def __init__(self, tap: Tap) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tap = tap

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: PyTorch would wrap the method for its compiler, whose import takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        op = operator(func)
        if op.view or op.reshapes or op.allocates or func in _ASKING:
            return func(*args, **kwargs)
        written, read = written_and_read(op, args, kwargs)
        on_device = self._tap.is_on_device
        if any(on_device(t) for t in (*written, *read)) or _to_device(kwargs):
            if op.composite:
                with self:
                    return func.decompose(*args, **kwargs)
            if func not in _COPIES:
                copied = indices_of_host(op, args, on_device)
                self._touched_by_host(op, [t for t in read if not any(t is other for other in copied)], written)
            return self.on_device(func, op, args, kwargs)
        self._touched_by_host(op, read, written)
        return func(*args, **kwargs)

    def _touched_by_host(self, op: Operator, read: Iterable[torch.Tensor], written: Iterable[torch.Tensor]) -> None:
        """The host's tensors among these: beside those of the device, too, it reads them at the call."""
        if op.name.startswith("new_") or op.name.endswith("_like"):
            read = ()  # asked for its shape alone
        for tensors, writes in ((read, False), (written, True)):
            for tensor in tensors:
                if not self._tap.is_on_device(tensor):
                    self._tap.touched(tensor, writes)

    def on_device(self, func: Any, op: Operator, args: Any, kwargs: Any) -> Any:
        """An operator that has tensors of the device, or makes some."""
        return func(*args, **kwargs)


def indices_of_host(op: Operator, args: Any, on_device: Callable[[torch.Tensor], bool]) -> list[torch.Tensor]:
    """The host's tensors that indexing copies to the device before it runs; one value for a mask is not copied."""
    if not op.masked:
        return []
    values = args[2:3] if len(args) > 2 and not is_masked_fill(args) else ()
    return [t for t in (*args[1], *values) if t is not None and not on_device(t)]


def _to_device(kwargs: Any) -> bool:
    """Whether an operator makes something on a device: a copy to it, whose source the device reads, or a factory."""
    device = kwargs.get("device")
    return device is not None and torch.device(device).type != "cpu"


class HostReads(TorchFunctionMode):
    """Sees the reads of host tensors that are no operators, such as `tolist`, printing and pickling.

    It does not see what NumPy, or who else shares the memory, reads and writes there later.

    Args:
        tap: Takes the notes.
    """

    def __init__(self, tap: Tap) -> None:
        super().__init__()
        self._tap = tap

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.untyped_storage:
            if sys._getframe(1).f_code.co_name == _PICKLING and not self._tap.is_on_device(args[0]):
                self._tap.touched(args[0], writes=False)
        elif func in _READ_IN_PLACE:
            if not self._tap.is_on_device(args[0]):
                self._tap.touched(args[0], writes=False)
            elif func is torch.Tensor.tolist:
                copied = args[0].cpu()
                self._tap.touched(copied, writes=False)
                return copied.tolist()
            elif func in _PRINTS:
                args[0].cpu()  # PyTorch prints by a copy of its own, out of every mode's sight
        return func(*args, **(kwargs or {}))
