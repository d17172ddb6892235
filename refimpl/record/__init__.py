"""Taps that turn running PyTorch code into a stream program, and its times into a trace, on a GPU and on `sim`.

Nothing that is recorded knows of it. The way of a recording: a tap (`tap_sim`, `tap_cuda`) notes `entries` made of
`work`; `cells` turns the values of index tensors into bytes; `programs` gives things `names` and makes ops.

The package can be called: `refimpl.record(…)` is `refimpl.record.record(…)`.

Example:
    >>> import torch
    >>> import refimpl
    >>> dev = refimpl.device.get("sim")
    >>> forward, copy = dev.Stream(), dev.Stream()
    >>> lens = torch.zeros(4, device="sim")
    >>> with refimpl.record("sim") as recording:
    ...     recording.name(forward, "forward")
    ...     recording.name(copy, "copy")
    ...     recording.name(lens, "lens")
    ...     with dev.stream(forward):
    ...         _ = lens.add_(1)
    ...     with dev.stream(copy):
    ...         _ = lens.cpu()
    >>> [type(op).__name__ for op in recording.ops]
    ['Launch', 'Memcpy', 'StreamSync']
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import ModuleType

import torch

from refimpl.record.recording import Recording, record

__all__ = ["Recording", "record"]


class _Callable(ModuleType):
    """The package under the name that users call."""

    def __call__(self, device: str | torch.device | None = None) -> AbstractContextManager[Recording]:
        return record(device)


sys.modules[__name__].__class__ = _Callable
