"""What PyTorch offers beside the device's module and `sim` does not have: each is refused in one sentence, since what
passes unnoticed would hide a race.

PyTorch's own streams and events reach a device in C++, by a guard that Python cannot fill in: there every stream would
be the default stream, and every event done. So `torch.Stream` and `torch.Event` are replaced in a process of `sim`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch
import torch.utils.dlpack

_INSTEAD = {
    "ExternalStream": "no other library has streams on sim, so use Stream()",
    "get_stream_from_external": "no other library has streams on sim, so use Stream()",
    "make_graphed_callables": "capture the forward by hand, with graph(…)",
    "memory_snapshot": "use memory_stats(), or observe(…)",
    "memory_summary": "use memory_stats()",
    "nvtx": "name a range with cost(name)",
    "_sleep": "use sleep_stream(us)",
    "MemPool": "only graphs have pools of their own, named by graph_pool_handle()",
    "use_mem_pool": "only graphs have pools of their own, named by graph_pool_handle()",
    "amp": "operators keep the types they are given",
}


def no_such_name(name: str) -> NoReturn:
    """Raises for a name that the device's module does not have, with what to use instead where there is something.

    Raises:
        AttributeError: Always, so that `hasattr` and `getattr` with a default work.
    """
    instead = _INSTEAD.get(name, "the simulated device has streams, events, graphs, memory and random numbers")
    raise AttributeError(f"sim: there is no torch.sim.{name}: {instead}", name=name)


def refuse_index(device: object) -> None:
    """Raises where a second simulated device is asked for, by index or name; None and other kinds of device pass."""
    index = device
    if isinstance(device, (str, torch.device)):
        named = torch.device(device)
        index = named.index if named.type == "sim" else None
    if index:
        raise RuntimeError(f"sim: device {device!r} does not exist: there is one simulated device, so use 'sim'")


def refuse_other_device(what: str, device: object) -> None:
    """Raises where `what` is asked for on a device that is not the simulated one; None passes."""
    refuse_index(device)
    if isinstance(device, (str, torch.device)) and torch.device(device).type != "sim":
        raise RuntimeError(f"sim: {what}(device={str(device)!r}) is of another device: use 'sim'")


def adapt_torch() -> None:
    """Makes `torch.Stream` and `torch.Event` raise for `sim`, `torch.Generator` give a CPU generator, which `sim`
    accepts, and CUDA stay uninitialised; what is of other devices, and `isinstance`, stay as they are."""
    for name, made in (("Stream", _TorchStream), ("Event", _TorchEvent), ("Generator", _TorchGenerator)):
        setattr(torch, name, made)
    torch.cuda._lazy_init = refuse_both
    for owner in (torch, torch._C, torch.utils.dlpack):
        name = "_to_dlpack" if owner is torch._C else "to_dlpack"
        setattr(owner, name, _to_dlpack_of(getattr(owner, name)))


def refuse_both(*args: object) -> NoReturn:
    """Raises where CUDA is asked for and `sim` is installed.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError(
        "cuda: sim is installed in this process, and PyTorch cannot have both: use CUDA in a process of its own"
    )


def refuse_dlpack() -> NoReturn:
    """Raises where the bytes of a simulated tensor are asked for as DLPack.

    Raises:
        BufferError: Always, as DLPack's protocol has it.
    """
    raise BufferError("sim: a tensor on sim as DLPack: copy it to the host first, with .cpu()")


def _to_dlpack_of(plain: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    def to_dlpack(tensor: torch.Tensor) -> Any:
        return refuse_dlpack() if tensor.device.type == "sim" else plain(tensor)

    return to_dlpack


class _Replacement(type):
    """Makes what PyTorch itself creates an instance of the replacement too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls.__dict__.get("replaces", cls), instance)


class _TorchStream(torch.Stream, metaclass=_Replacement):
    replaces = torch.Stream

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _of_another_device("Stream", super().__new__(cls, *args, **kwargs))


class _TorchEvent(torch.Event, metaclass=_Replacement):
    replaces = torch.Event

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _of_another_device("Event", super().__new__(cls, *args, **kwargs))


class _GeneratorReplacement(_Replacement, type(torch.Generator)):  # type: ignore[misc]  # it has a metaclass from 2.13
    pass


class _TorchGenerator(torch.Generator, metaclass=_GeneratorReplacement):
    replaces = torch.Generator

    def __new__(cls, device: Any = "cpu") -> Any:
        return cls.replaces("cpu" if torch.device(device).type == "sim" else device)


def _of_another_device(name: str, made: Any) -> Any:
    if made.device.type == "sim":
        raise NotImplementedError(
            f"sim: torch.{name} cannot be simulated: use torch.get_device_module('sim').{name}(), as on 'cuda'"
        )
    return made
