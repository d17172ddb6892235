"""What PyTorch offers beside the device's module and `sim` does not have: each is refused in one sentence, since what
passes unnoticed would hide a race; `adapted` puts some of these in PyTorch's own places.
"""

from __future__ import annotations

from typing import NoReturn

import torch

_RECURRENT = ("_thnn_fused_lstm_cell", "_thnn_fused_gru_cell")
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


def refuse_both(*args: object) -> NoReturn:
    """Raises where CUDA is asked for and `sim` is installed.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError(
        "cuda: sim is installed in this process, and PyTorch cannot have both: use CUDA in a process of its own"
    )


def refuse_operator(name: str) -> NoReturn:
    """Raises for an operator that the CPU, which stands behind the device, does not have.

    Raises:
        NotImplementedError: Always.
    """
    instead = "use nn.RNN, or write the cell with matrix products" if name in _RECURRENT else "use other operators"
    raise NotImplementedError(f"sim: {name} is not supported: PyTorch has no CPU kernel for it, so {instead}")


def refuse_dlpack() -> NoReturn:
    """Raises where the bytes of a simulated tensor are asked for as DLPack.

    Raises:
        BufferError: Always, as DLPack's protocol has it.
    """
    raise BufferError("sim: a tensor on sim as DLPack: copy it to the host first, with .cpu()")
