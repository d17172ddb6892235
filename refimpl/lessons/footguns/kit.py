"""What every footgun has: two forms of one text, racy and fixed, that run on either device."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from refimpl import device as devices
from refimpl.order import Hazard

STALL_US = 20_000.0
"""How long a stalled stream lags behind on a GPU: longer than anything else in a footgun takes."""

Values = list[int]
Body = Callable[["Setting", bool], Values]


@dataclass(frozen=True)
class Setting:
    """Where a footgun runs: a device, and two streams of it.

    Args:
        device: ``"cuda"`` or ``"sim"``.
        first, second: streams; ``first`` gets its work first.
    """

    device: str
    first: Any
    second: Any

    @property
    def dev(self) -> Any:
        """The device's module."""
        return devices.get(self.device)

    def full(self, *values: int) -> torch.Tensor:
        """A tensor on the device, there before the footgun begins."""
        return torch.tensor(values, device=self.device)

    def stall(self) -> None:
        """The current stream lags behind from here on, so that an order that no fence makes is not kept by luck."""
        devices.sleep_stream(self.device, STALL_US)


@dataclass(frozen=True)
class Footgun:
    """A small program that is easily written wrong, with the line that puts it right.

    Args:
        name: as a command names it.
        hazard: what kind of disorder.
        words: what goes wrong, in one sentence.
        body: runs it in a setting, with the fence or without; returns what came out.
        right: what comes out if all is ordered.
    """

    name: str
    hazard: Hazard
    words: str
    body: Body
    right: Values

    def run(self, device: str, fenced: bool) -> Values:
        """What comes out, of the fixed form or the racy one; the host blocks until the device is idle.

        Args:
            device: ``"cuda"`` or ``"sim"``.
            fenced: the fixed form.
        """
        dev = devices.get(device)
        dev.synchronize()
        values = self.body(Setting(device, dev.Stream(), dev.Stream()), fenced)
        dev.synchronize()
        return values


def values(tensor: torch.Tensor) -> Values:
    """The tensor's values on the host, which blocks until the whole device is idle."""
    devices.get(tensor.device.type).synchronize()
    found: Values = tensor.flatten().tolist()
    return found
