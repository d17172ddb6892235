"""What PyTorch offers beside the device's module and `sim` does not have: each is refused in one sentence, since what
passes unnoticed would hide a race.

PyTorch's own streams and events reach a device in C++, by a guard that Python cannot fill in: there every stream would
be the default stream, and every event done. So `torch.Stream` and `torch.Event` are replaced in a process of `sim`.
"""

from __future__ import annotations

from typing import Any

import torch


def refuse_index(device: object) -> None:
    """Raises where a second simulated device is asked for, by index or name; None and other kinds of device pass."""
    index = device
    if isinstance(device, (str, torch.device)):
        named = torch.device(device)
        index = named.index if named.type == "sim" else None
    if index:
        raise RuntimeError(f"sim: device {device!r} does not exist: there is one simulated device, so use 'sim'")


def refuse_torch_streams() -> None:
    """Makes `torch.Stream` and `torch.Event` raise for `sim`; those of other devices, and `isinstance`, stay as they
    are."""
    for name, made in (("Stream", _TorchStream), ("Event", _TorchEvent)):
        setattr(torch, name, made)


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


def _of_another_device(name: str, made: Any) -> Any:
    if made.device.type == "sim":
        raise NotImplementedError(
            f"sim: torch.{name} cannot be simulated: use torch.get_device_module('sim').{name}(), as on 'cuda'"
        )
    return made
