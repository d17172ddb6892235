"""What is replaced in PyTorch itself in a process of `sim`.

PyTorch's own streams and events reach a device in C++, by a guard that Python cannot fill in: there every stream would
be the default stream, and every event done. So `torch.Stream` and `torch.Event` refuse `sim`, and `torch.accelerator`
does what the device's module does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, NoReturn

import torch
import torch.utils.dlpack

from refimpl.device.simulator.graphs import CUDAGraph
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.refused import refuse_both, refuse_dlpack
from refimpl.device.simulator.streams import Stream

_ACCELERATOR = {
    "current_stream": "current_stream",
    "set_stream": "set_stream",
    "synchronize": "synchronize",
    "current_device_index": "current_device",
    "current_device_idx": "current_device",
    "set_device_index": "set_device",
    "set_device_idx": "set_device",
    "device_index": "device",
    "empty_cache": "empty_cache",
    "get_memory_info": "mem_get_info",
    "max_memory_allocated": "max_memory_allocated",
    "max_memory_reserved": "max_memory_reserved",
    "memory_allocated": "memory_allocated",
    "memory_reserved": "memory_reserved",
    "memory_stats": "memory_stats",
    "reset_peak_memory_stats": "reset_peak_memory_stats",
}


def adapt_torch(backend: ModuleType) -> None:
    """Puts in their places: streams and events that refuse `sim`, a `torch.Generator` that gives a CPU generator, which
    `sim` accepts, `torch.accelerator` for `sim`, and what refuses CUDA and DLPack. What is of other devices, and
    `isinstance`, stay as they are.

    Args:
        backend: The device's module.
    """
    for name, made in (("Stream", _TorchStream), ("Event", _TorchEvent), ("Generator", _TorchGenerator)):
        setattr(torch, name, made)
    for owner, name in ((torch, "to_dlpack"), (torch._C, "_to_dlpack"), (torch.utils.dlpack, "to_dlpack")):
        setattr(owner, name, _to_dlpack(getattr(owner, name)))
    _adapt_accelerator(backend)
    _adapt_cuda()


def _adapt_accelerator(backend: ModuleType) -> None:
    ours = {name: getattr(backend, its) for name, its in _ACCELERATOR.items()}
    ours |= {"empty_host_cache": DEVICE.pinned.empty_cache, "reset_accumulated_memory_stats": _refuse_reset}
    for owner in (torch.accelerator, torch.accelerator.memory):
        for name, function in ours.items():
            if hasattr(owner, name):
                setattr(owner, name, function)


def _refuse_reset(device: object = None) -> NoReturn:
    raise NotImplementedError(
        "sim: reset_accumulated_memory_stats is not supported: take the difference of two memory_stats()"
    )


def _adapt_cuda() -> None:
    """CUDA stays uninitialised, and what takes a stream or a graph says who takes those of `sim`."""
    torch.cuda._lazy_init = refuse_both
    graph: Any = torch.cuda.graph
    begin = graph.__init__

    def init(self: Any, cuda_graph: Any, *args: Any, **kwargs: Any) -> None:
        _refuse_ours("graph", cuda_graph)
        begin(self, cuda_graph, *args, **kwargs)

    graph.__init__ = init
    for name in ("stream", "set_stream"):
        setattr(torch.cuda, name, _of_cuda(name, getattr(torch.cuda, name)))


def _of_cuda(name: str, plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @wraps(plain)
    def checked(stream: Any) -> Any:
        _refuse_ours(name, stream)
        return plain(stream)

    return checked


def _refuse_ours(name: str, given: object) -> None:
    if isinstance(given, (Stream, CUDAGraph)):
        raise TypeError(
            f"cuda: torch.cuda.{name} is given a {type(given).__name__} of sim: "
            f"use torch.get_device_module('sim').{name}"
        )


def _to_dlpack(plain: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
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
