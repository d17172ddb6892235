"""``FutureMap``: what one step leaves on the device for the next, without the host in between.

Source: sgl-project/sglang, ``managers/overlap_utils.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch

from refimpl import device as devices
from refimpl.engine.streams import Streams
from refimpl.fences import Fences, record_publish_ready, wait_publish_ready

Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""By name: the shape of one row, and its type."""
NOWHERE: Mapping[str, torch.Tensor] = MappingProxyType({})
"""No memory is given to gather into."""


@dataclass(frozen=True)
class RelayPayload:
    """What the next step of the same requests starts from.

    Args:
        bonus_tokens: ``[bs]`` int64, the last token of each request: emitted, and not in the cache yet.
        extras: by name, what the worker's draft needs besides, ``[bs, …]``.
    """

    bonus_tokens: torch.Tensor
    extras: Mapping[str, torch.Tensor] = field(default_factory=dict)


class FutureMap:
    """Relay buffers with a row for each row of ``req_to_token``; row 0 is padding.

    Two calls write it. ``publish`` is early: as soon as the new lengths exist, and with an event, since the schedule
    stream reads them. ``stash`` is late and without an event: its readers run on the forward stream itself. The rows of
    a request whose prefill ran elsewhere are seeded by the same two calls, on the schedule stream.

    Args:
        device: ``"cuda"`` or ``"sim"``.
        rows: rows of ``req_to_token``, the padding row included.
        extras: what the worker relays beside the token.
        fences: what orders the readers.
        streams: the engine's.

    Attributes:
        output_tokens_buf: ``[rows]`` int64. Forward writes and reads it.
        new_seq_lens_buf: ``[rows]`` int64. Forward writes it, and schedule where it seeds; schedule reads it, and so
            does the private stream that takes lengths to the host.
        publish_ready: the event; None until somebody publishes.
    """

    def __init__(self, device: str, rows: int, extras: Shapes, fences: Fences, streams: Streams) -> None:
        dev = devices.get(device)
        self.fences, self._streams = fences, streams
        self.output_tokens_buf = torch.zeros(rows, dtype=torch.int64, device=device)
        self.new_seq_lens_buf = torch.zeros(rows, dtype=torch.int64, device=device)
        self.extras_buf = {
            name: torch.zeros(rows, *shape, dtype=dtype, device=device) for name, (shape, dtype) in extras.items()
        }
        self.publish_ready: Any = None
        self._new_event = dev.Event
        self.fwd_prepare_d2h_stream = streams.fwd_prepare_d2h_stream
        self.new_seq_lens_cpu_pinned = devices.pinned(rows, torch.int64, device)

    def publish(self, future_indices: torch.Tensor, new_seq_lens: torch.Tensor, writer: Any = None) -> None:
        """Relay the new lengths, and say so. Without requests, as on an idle rank, it does nothing at all.

        Args:
            future_indices: ``[bs]`` int64, the requests' rows.
            new_seq_lens: ``[bs]`` int64.
            writer: the current stream; None for ``forward_stream``.

        Order:
            On ``forward_stream``, as early in the step as the lengths exist; on ``schedule_stream`` where the rows of
            prebuilt requests are seeded, behind ``before_prebuilt``. The host does not block.
        """
        if not len(future_indices):
            return
        # Safe because: schedule read the last lengths before this forward, which waited for it.
        self.new_seq_lens_buf[future_indices] = new_seq_lens
        recorded = self.publish_ready is not None
        if not recorded:
            self.publish_ready = self._new_event()
        stream = self._streams.forward_stream if writer is None else writer
        record_publish_ready(self.fences.publish, self.publish_ready, stream, recorded)

    def stash(self, future_indices: torch.Tensor, payload: RelayPayload) -> None:
        """Relay tokens and draft state.

        Order:
            On ``forward_stream``, at the end of the step. No event: the readers come later on the same stream. Seeds
            are written on ``schedule_stream``; the forward that reads them waits for it.
        """
        self.output_tokens_buf[future_indices] = payload.bonus_tokens
        for name, rows in payload.extras.items():
            self.extras_buf[name][future_indices] = rows

    def resolve_seq_lens(self, future_indices: torch.Tensor) -> torch.Tensor:
        """``[bs]`` int64: the lengths that the last step of these requests published.

        Order:
            On ``schedule_stream``, which waits for ``publish_ready``; the host does not block.
        """
        wait_publish_ready(self.fences.publish, self.publish_ready, self._streams.schedule_stream)
        return self.new_seq_lens_buf.index_select(0, future_indices)

    def resolve_seq_lens_cpu_blocking(self, rows: list[int]) -> list[int]:
        """The same lengths on the host, for kernels whose planner runs there.

        Order:
            A private stream waits for ``publish_ready`` and copies; the host blocks for that stream alone. The
            schedule stream, which waits for more than the publish, is not synchronized.
        """
        wait_publish_ready(self.fences.publish, self.publish_ready, self.fwd_prepare_d2h_stream)
        with self.fwd_prepare_d2h_stream:
            self.new_seq_lens_cpu_pinned.copy_(self.new_seq_lens_buf, non_blocking=True)
        # Safe because: the host reads new_seq_lens_cpu_pinned after the private stream's copy.
        self.fwd_prepare_d2h_stream.synchronize()
        lengths: list[int] = self.new_seq_lens_cpu_pinned[rows].tolist()
        return lengths

    def resolve_forward_inputs(
        self, future_indices: torch.Tensor, names: Iterable[str], into: Mapping[str, torch.Tensor] = NOWHERE
    ) -> RelayPayload:
        """What the last step of these requests stashed.

        Args:
            future_indices: ``[bs]`` int64, the requests' rows.
            names: of the extras that are wanted.
            into: memory ``[bs, …]`` by name, ``"bonus_tokens"`` for the tokens; what has none gets new memory.

        Order:
            On ``forward_stream``, where the stash was written: in order without a fence. ``into`` is overwritten, so
            no other stream may still read it.
        """

        def gathered(name: str, buffer: torch.Tensor) -> torch.Tensor:
            if name not in into:
                return buffer.index_select(0, future_indices)
            return torch.index_select(buffer, 0, future_indices, out=into[name])

        extras = {name: gathered(name, self.extras_buf[name]) for name in names}
        return RelayPayload(gathered("bonus_tokens", self.output_tokens_buf), extras)
