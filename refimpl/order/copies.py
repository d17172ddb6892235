"""What a copy or a fill promises about the host: the rules of NVIDIA's page on synchronization behaviour, as pure
functions.

Strict counts on what that page promises. As observed also counts on what current drivers do: a synchronous copy from
pageable memory returns
after its DMA, a synchronous fill of managed memory holds the host.

Source: https://docs.nvidia.com/cuda/cuda-driver-api/api-sync-behavior.html
"""

from collections.abc import Mapping
from enum import Enum, auto

from refimpl.program import LEGACY, Api, Buffer, CopyKind, Mem, Memcpy, Memset


class HostRule(Enum):
    """How a copy or fill meets the host.

    ``NONE``: it is queued, and the host goes on. ``BLOCKS``: the host goes on when it has executed. ``STAGES``: the
        host first waits for the stream,
    takes the source itself, and goes on while the write to the target is still pending.
    """

    NONE = auto()
    BLOCKS = auto()
    STAGES = auto()


def effective_kind(copy: Memcpy, buffers: Mapping[str, Buffer]) -> CopyKind:
    """The direction of a copy, with ``Default`` resolved by its buffers; managed memory counts as device memory."""
    if copy.kind is not CopyKind.DEFAULT:
        return copy.kind
    side = {Mem.DEVICE: "D", Mem.MANAGED: "D", Mem.PINNED: "H", Mem.PAGEABLE: "H"}
    return CopyKind(f"{side[buffers[copy.src.buf].mem]}2{side[buffers[copy.dst.buf].mem]}")


def copy_rule(copy: Memcpy, buffers: Mapping[str, Buffer], as_observed: bool = False) -> HostRule:
    """How this copy meets the host."""
    kind = effective_kind(copy, buffers)
    if kind is CopyKind.H2H:
        return HostRule.BLOCKS
    if copy.api is Api.ASYNC or kind is CopyKind.D2D:
        return HostRule.NONE
    if kind is CopyKind.D2H or buffers[copy.src.buf].mem is Mem.PINNED:
        return HostRule.BLOCKS
    return HostRule.BLOCKS if as_observed else HostRule.STAGES


def fill_rule(fill: Memset, buffers: Mapping[str, Buffer], as_observed: bool = False) -> HostRule:
    """How this fill meets the host: only a synchronous one of pinned memory is promised to block it."""
    if fill.api is Api.ASYNC:
        return HostRule.NONE
    mem = buffers[fill.dst.buf].mem
    blocks = mem is Mem.PINNED or (as_observed and mem is Mem.MANAGED)
    return HostRule.BLOCKS if blocks else HostRule.NONE


def runs_on(op: Memcpy | Memset) -> str:
    """The stream that executes the copy or fill: a synchronous one goes through the legacy stream."""
    return LEGACY if op.api is Api.SYNC else op.stream
