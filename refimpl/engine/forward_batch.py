"""What a forward is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from refimpl.engine.forward_mode import ForwardMode
from refimpl.engine.future_map import RelayPayload
from refimpl.model.sampling import SamplingMode

OnPublish = Callable[[torch.Tensor], None]
"""Called with ``[bs]`` int64 new lengths, on ``forward_stream``, as soon as they exist."""


@dataclass(frozen=True)
class ExtendInputs:
    """A prefill's own: T prompt tokens of all its requests, one behind the other.

    Args:
        input_ids, positions: ``[T]`` int64.
        out_cache_loc: ``[T]`` int32, the slots that the schedule stream allocated.
        q_starts: ``[bs + 1]`` int32, where each request's tokens begin.
        last_rows: ``[bs]`` int64, the last token of each.
        lens: tokens of each request, on the host.
    """

    input_ids: torch.Tensor
    positions: torch.Tensor
    out_cache_loc: torch.Tensor
    q_starts: torch.Tensor
    last_rows: torch.Tensor
    lens: tuple[int, ...]


@dataclass(frozen=True)
class ForwardBatch:
    """One step's attributes, taken when it is launched: what the scheduler changes afterwards is not seen here.

    Args:
        forward_mode: ``EXTEND`` or ``DECODE``; a worker makes its verify and draft forwards of the latter.
        req_pool_indices: ``[bs]`` int64, rows of ``req_to_token``; schedule wrote it.
        seq_lens: ``[bs]`` int64, tokens in the cache before a decode, after an extend.
        mode: how its tokens are chosen; decides which graph runs.
        relay: what the last step left; None for a prefill.
        extend: a prefill's tokens; None for a decode.
        seq_lens_cpu: the lengths on the host, where they were asked for.
    """

    forward_mode: ForwardMode
    req_pool_indices: torch.Tensor
    seq_lens: torch.Tensor
    mode: SamplingMode
    relay: RelayPayload | None = None
    extend: ExtendInputs | None = None
    seq_lens_cpu: tuple[int, ...] | None = None

    @property
    def batch_size(self) -> int:
        return int(self.req_pool_indices.shape[0])


@dataclass
class ForwardResult:
    """What a forward left on the device.

    Args:
        packed: ``[bs, block + 1]`` int32: the tokens that came out, padded, and how many they are.
        relay: what the next step starts from.
        packed_cpu: the same numbers in pinned memory, there once ``copy_done`` has executed.
        copy_done: recorded behind their copy.
    """

    packed: torch.Tensor
    relay: RelayPayload
    packed_cpu: torch.Tensor | None = None
    copy_done: Any = None


def pack(tokens: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """``[bs, block]`` tokens and ``[bs]`` counts in one ``[bs, block + 1]`` int32: one copy to the host a step."""
    return torch.cat([tokens, counts[:, None].to(tokens.dtype)], dim=1).int()


def pack_first(tokens: torch.Tensor, block: int) -> torch.Tensor:
    """A prefill's ``[bs]`` tokens, one a request, packed like a step's."""
    return pack(torch.nn.functional.pad(tokens[:, None], (0, block - 1)), torch.ones_like(tokens))
