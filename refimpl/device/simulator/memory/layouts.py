"""The sizes of PyTorch's caching allocator for CUDA, without its options, and what a tensor needs of memory.

Source: pytorch `c10/cuda/CUDACachingAllocator.cpp` (`round_size`, `get_allocation_size`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch

from refimpl.device.simulator.memory.buffers import span

LEAST_BYTES = 512
"""Every block's size is a multiple of this."""
SMALL_BYTES = 1 << 20
"""Requests up to this size are small, and have lists and segments of their own."""
_SMALL_SEGMENT_BYTES = 2 << 20
_LARGE_SEGMENT_BYTES = 20 << 20
_OWN_SEGMENT_BYTES = 10 << 20
_SEGMENT_STEP_BYTES = 2 << 20


def rounded(bytes_: int) -> int:
    """The size of the block that a request of `bytes_` needs.

    Example:
        >>> rounded(1), rounded(512), rounded(513)
        (512, 512, 1024)
    """
    return max(LEAST_BYTES, -(-bytes_ // LEAST_BYTES) * LEAST_BYTES)


def segment_bytes(size: int) -> int:
    """The size of the segment that is made for a block of `size` bytes, where no free one fits."""
    if size <= SMALL_BYTES:
        return _SMALL_SEGMENT_BYTES
    if size < _OWN_SEGMENT_BYTES:
        return _LARGE_SEGMENT_BYTES
    return -(-size // _SEGMENT_STEP_BYTES) * _SEGMENT_STEP_BYTES


@dataclass(frozen=True, slots=True)
class Layout:
    """What a tensor needs of memory.

    Args:
        shape, stride, dtype: The tensor's.
        elements, bytes: From its first to its last.
        block_bytes: The size of the block.
        small: It is of the small class.
        flat: It is one run of elements, in one dimension.
        signature: By which plans know a tensor of this layout.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    elements: int
    bytes: int
    block_bytes: int
    small: bool
    flat: bool
    signature: tuple[torch.dtype, tuple[int, ...], tuple[int, ...]]


@lru_cache(maxsize=8192)
def layout_of(shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> Layout:
    """The layout of a tensor; the same object while it is remembered."""
    elements, bytes_ = span(shape, stride, dtype)
    flat = shape == (elements,) and stride == (1,)
    size = rounded(bytes_)
    return Layout(shape, stride, dtype, elements, bytes_, size, size <= SMALL_BYTES, flat, (dtype, shape, stride))
