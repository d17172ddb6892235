"""What the host does with its own tensors, on either device: reads and writes of memory that the device copies."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from refimpl.device.simulator.operators.plans import Operator, operator, written_and_read
from refimpl.record.tap import Tap

_READ_IN_PLACE = (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__)
_ASKING = (torch.ops.aten.is_pinned.default,)


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
            return self.on_device(func, op, args, kwargs)
        for tensor in read:
            self._tap.touched(tensor, writes=False)
        for tensor in written:
            self._tap.touched(tensor, writes=True)
        return func(*args, **kwargs)

    def on_device(self, func: Any, op: Operator, args: Any, kwargs: Any) -> Any:
        """An operator that has tensors of the device, or makes some."""
        return func(*args, **kwargs)


def _to_device(kwargs: Any) -> bool:
    """Whether an operator makes something on a device: a copy to it, whose source the device reads, or a factory."""
    device = kwargs.get("device")
    return device is not None and torch.device(device).type != "cpu"


class HostReads(TorchFunctionMode):
    """Sees the reads of host tensors that are no operators, such as `tolist`.

    Args:
        tap: Takes the notes.
    """

    def __init__(self, tap: Tap) -> None:
        super().__init__()
        self._tap = tap

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _READ_IN_PLACE:
            if not self._tap.is_on_device(args[0]):
                self._tap.touched(args[0], writes=False)
            elif func is torch.Tensor.tolist:
                copied = args[0].cpu()
                self._tap.touched(copied, writes=False)
                return copied.tolist()
        return func(*args, **(kwargs or {}))
