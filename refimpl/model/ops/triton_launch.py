"""How the kernels are launched: on Hopper each may start while the kernel before it ends.

Programmatic dependent launch takes the launch latency out of a chain of short kernels. A kernel launched so first calls
`gdc_wait`, before it reads or writes anything that another kernel writes or reads; then all before it is complete and
visible, as on any stream. What never changes while a model runs, its weights, may be read before. A kernel calls
`gdc_launch_dependents` when it has loaded what it needs: earlier, and the blocks of the next would wait in places that
its own could take.

Source: CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization".
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton

HOPPER = (9, 0)
"""The first compute capability with programmatic dependent launch."""


@cache
def dependent(device: torch.device) -> dict[str, Any]:
    """The arguments of a launch on this device: `DEPENDENT` for the kernel, `launch_pdl` for the launcher."""
    if device.type != "cuda" or torch.version.hip or torch.cuda.get_device_capability(device) < HOPPER:
        return {"DEPENDENT": False}
    return {"DEPENDENT": True, "launch_pdl": True}


@cache
def multiprocessors(device: torch.device) -> int:
    """How many blocks of threads can at least run at once."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def power_of_two(n: int) -> int:
    """The least power of two that is at least `n`: the length of a block that holds `n` elements."""
    return int(triton.next_power_of_2(n))


def rows_of(x: torch.Tensor) -> torch.Tensor:
    """x [..., d] as [rows, d] with adjacent elements in a row; a view if the layout allows it."""
    rows = x.reshape(-1, x.shape[-1])
    return rows if rows.stride(1) == 1 else rows.contiguous()
