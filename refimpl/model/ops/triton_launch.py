"""How the kernels are launched: past Triton's own dispatch, and on Hopper while the kernel before still ends.

Triton works out anew at each launch which compiled kernel the arguments ask for, which takes the host longer than the
launch does; a decode step has few kernels, a prefill some dozens. Here what was compiled is found again by what that
choice depends on. (Triton's launch hooks, by which its own profiler counts, are
not called there.)

Programmatic dependent launch takes the launch latency out of a chain of short kernels. A kernel launched so first calls
`gdc_wait`, before it reads or writes anything that another kernel writes or reads; then all before it is complete and
visible, as on any stream. What never changes while a model runs, its weights, may be read before. A kernel calls
`gdc_launch_dependents` when it has loaded what it needs: earlier, and the blocks of the next would wait in places that
its own could take.

Source: CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

HOPPER = (9, 0)
"""The first compute capability with programmatic dependent launch."""
ALIGNED = 16
"""Bytes; Triton loads wider from memory that begins at a multiple of it, and compiles for that."""


class Kernel:
    """A Triton kernel, and what has been compiled of it.

    Args:
        jit: the kernel. Its parameters are tensors, then ``numbers``, then ``free`` numbers, which it names in
            ``do_not_specialize``, then constants, of which ``DEPENDENT`` is the last.
    """

    def __init__(self, jit: Any) -> None:
        self._jit, self._compiled = jit, dict[tuple[Any, ...], tuple[Any, bool]]()

    def launch(
        self,
        grid: tuple[int, int, int],
        tensors: Sequence[Tensor],
        numbers: tuple[float, ...] = (),
        free: tuple[int, ...] = (),
        constants: tuple[Any, ...] = (),
        warps: int = 4,
        stages: int | None = None,
    ) -> None:
        """Launches it on the current stream; the first launch of a kind compiles.

        Args:
            grid: programs in each direction; all of them at least 1.
            tensors: on the current device.
            numbers: sizes, strides and factors, which are few: it is compiled for each set that differs for Triton. One
                of them is always an int, or always a float.
            free: numbers below 2**31 of which there are many.
            constants: of the kernel but the last.
            warps, stages: of a program; None for as many stages as Triton chooses.
        """
        pointers = [tensor.data_ptr() for tensor in tensors]
        device, bits = tensors[0].get_device(), 0
        for pointer in pointers:
            bits |= pointer
        kind = (device, numbers, constants, warps, stages, *[tensor.dtype for tensor in tensors])
        known = None if bits % ALIGNED else self._compiled.get(kind)
        if known is None:
            kept = kind if not bits % ALIGNED else None
            self._dispatch(kept, grid, (*tensors, *numbers, *free, *constants), warps, stages)
            return
        compiled, depends = known
        stream = torch._C._cuda_getCurrentRawStream(device)
        hooks = None, None, None
        # As Triton's own dispatch ends. A tensor may be given as its address; constants keep their places.
        arguments = (*pointers, *numbers, *free, *constants, depends)
        compiled.run(*grid, stream, compiled.function, compiled.packed_metadata, *hooks, *arguments)

    def _dispatch(
        self,
        kind: tuple[Any, ...] | None,
        grid: tuple[int, int, int],
        arguments: tuple[Any, ...],
        warps: int,
        stages: int | None,
    ) -> None:
        """Launches it the way of Triton, and keeps what that compiled under its kind, if it has one."""
        first: Tensor = arguments[0]
        depends = starts_early(first.device)
        options: dict[str, Any] = {"launch_pdl": True} if depends else {}
        if stages is not None:
            options["num_stages"] = stages
        compiled = self._jit[grid](*arguments, depends, num_warps=warps, **options)
        # An interpreter, which Triton has for machines without a GPU, compiles nothing.
        if kind is not None and compiled is not None and _compiles_for_kinds(first):
            self._compiled[kind] = compiled, depends


def _compiles_for_kinds(first: Tensor) -> bool:
    """Whether a kernel serves every launch of its kind: on AMD it is compiled for the size of each memory, too; and
    Triton compiles for the current device, whichever the tensors are on."""
    if torch.version.hip is not None:
        return False
    return not first.is_cuda or first.get_device() == torch.cuda.current_device()


@cache
def starts_early(device: torch.device) -> bool:
    """Whether kernels on this device may start while the one before ends."""
    if device.type != "cuda" or torch.version.hip:
        return False
    return torch.cuda.get_device_capability(device) >= HOPPER


@cache
def multiprocessors(device: torch.device) -> int:
    """How many blocks of threads can at least run at once."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def power_of_two(n: int) -> int:
    """The least power of two that is at least `n`: the length of a block that holds `n` elements."""
    return 1 << (n - 1).bit_length()


def rows_of(x: torch.Tensor) -> torch.Tensor:
    """x [..., d] as [rows, d] with adjacent elements in a row; a view if the layout allows it."""
    rows = x.reshape(-1, x.shape[-1])
    return rows if rows.stride(1) == 1 else rows.contiguous()
