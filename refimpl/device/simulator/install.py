"""Makes `sim` a device of PyTorch in this process."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from refimpl.device.simulator.refused import refuse_both

_FACTORIES = (
    "arange",
    "arange.start",
    "arange.start_step",
    "eye",
    "eye.m",
    "linspace",
    "logspace",
    "randperm",
    "randperm.generator",
    "range",
    "range.step",
)
_libraries: list[torch.library.Library] = []


def installed() -> bool:
    """Whether `sim` is a device of this process."""
    return bool(_libraries)


def install() -> ModuleType:
    """Installs the device once, and returns its module.

    Raises:
        RuntimeError: CUDA is initialised in this process, or another backend has PyTorch's one free device type.
    """
    from refimpl.device.simulator import backend
    from refimpl.device.simulator.adapted import adapt_torch

    if installed():
        return backend
    if torch.cuda.is_initialized():
        raise RuntimeError(
            "sim: CUDA is initialised in this process, and PyTorch cannot have both: use sim in a process of its own"
        )
    taken = torch._C._get_privateuse1_backend_name()
    if taken != "privateuseone":
        raise RuntimeError(
            f"sim: the backend {taken!r} has taken PyTorch's one free device type in this process: "
            "use sim in a process of its own"
        )
    _setup_privateuseone_for_python_backend("sim", backend_module=backend, hook=None, device_guard=_guard())
    _register()
    adapt_torch(backend)
    return backend


def _guard() -> Any:
    class Guard(torch._C._acc.DeviceGuard):
        def type_(self) -> Any:
            return torch._C._autograd.DeviceType.PrivateUse1

    return Guard()


def _register() -> None:
    """Sends every operator here, and those by name for which PyTorch would rather use a kernel that resizes or leaves
    the device."""
    from refimpl.device.simulator.operators.copies import is_pinned, pin_memory
    from refimpl.device.simulator.operators.dispatch import dispatch
    from refimpl.device.simulator.tensor import SimTensor

    SimTensor.dispatch = dispatch
    fallback = torch.library.Library("_", "IMPL")
    fallback.fallback(
        lambda func, *args, **kwargs: dispatch(func, args, kwargs), dispatch_key="PrivateUse1", with_keyset=False
    )
    named = torch.library.Library("aten", "IMPL")
    named.impl("is_pinned", is_pinned, "CPU")
    named.impl("_pin_memory", pin_memory, "CPU")
    for name in (*_FACTORIES, "_to_copy", "_local_scalar_dense"):
        packet, _, overload = name.partition(".")
        sender = _sender(getattr(getattr(torch.ops.aten, packet), overload or "default"))
        named.impl(name, sender, "PrivateUse1")
    _libraries.extend((fallback, named))


def _sender(func: Any) -> Any:
    from refimpl.device.simulator.operators.dispatch import dispatch

    return lambda *args, **kwargs: dispatch(func, args, kwargs)


def refuse_cuda() -> None:
    """Raises where CUDA is asked for and `sim` is installed."""
    if installed():
        refuse_both()
