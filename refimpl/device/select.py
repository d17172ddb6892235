"""Which device: the best one here, or one by name."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import torch

from refimpl.device.simulator.install import install, installed, refuse_cuda
from refimpl.device.simulator.refused import refuse_index

DEVICE_VARIABLE = "STREAM_ORDER_DEVICE"
"""Environment variable that names the device `best` picks; the notebooks' runner sets it."""


def best() -> str:
    """The name of the best device of this process: "cuda" where there is a GPU, else "sim", which is then installed.

    A process in which `sim` is installed already stays with it; `STREAM_ORDER_DEVICE=sim` asks for it where there is
    a GPU.

    Raises:
        ValueError: `STREAM_ORDER_DEVICE` names another device.
        RuntimeError: it asks for a GPU, and there is none.
    """
    asked = os.environ.get(DEVICE_VARIABLE)
    if asked:
        get(asked)
        return asked
    if not installed() and torch.cuda.is_available():
        return "cuda"
    install()
    return "sim"


def sim() -> Any:
    """Installs the simulated device, once, and returns its module.

    Raises:
        RuntimeError: CUDA is initialised in this process, or another backend has PyTorch's one free device type.
    """
    return install()


def get(name: str | torch.device) -> Any:
    """The module of a device; asking for "sim" installs it.

    For "sim" that is `torch.get_device_module("sim")`. For "cuda" it is `refimpl.device.cuda`: every name of
    `torch.cuda`, which is `torch.get_device_module("cuda")`. Beside them both have `host_work`, `sleep_stream`,
    `host_clock_us`, `pinned`, `Generator`, `is_current` and `cost`, so that one text runs on either.

    Args:
        name: "cuda" or "sim", with or without an index.
    Raises:
        ValueError: Another name.
        RuntimeError: `sim` and CUDA are asked for in one process, or a device that does not exist.
    """
    kind = name.type if isinstance(name, torch.device) else name.partition(":")[0]
    if kind == "sim":
        module = install()
        refuse_index(name)
        return module
    if kind != "cuda":
        raise ValueError(f"device {name!r} is not known: use 'cuda' or 'sim'")
    refuse_cuda()
    return _cuda()


@cache
def _cuda() -> Any:
    """Looked for once: a loop asks for its device many times a step, and the driver's answer does not change."""
    if not torch.cuda.is_available():
        raise RuntimeError(
            "cuda: there is no GPU that this PyTorch can use: use refimpl.device.best(), which picks sim"
        )
    from refimpl.device import cuda

    return cuda
