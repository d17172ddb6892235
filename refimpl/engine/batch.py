"""``ScheduleBatch``: requests that step together, and their rows on the device.

Source: sgl-project/sglang, ``managers/schedule_batch.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from refimpl.engine.draft_input import DraftInput
from refimpl.engine.forward_batch import ExtendInputs
from refimpl.engine.forward_mode import ForwardMode
from refimpl.engine.request import Req
from refimpl.engine.sampling_table import sampling_mode
from refimpl.engine.staging import Staging
from refimpl.model.sampling import SamplingMode


@dataclass(frozen=True)
class LaunchedBatch:
    """What a batch was when it was launched; its results belong to these requests, in this order."""

    forward_mode: ForwardMode
    reqs: tuple[Req, ...]
    epochs: tuple[int, ...]


@dataclass(eq=False)
class ScheduleBatch:
    """Requests that step together. The host owns it.

    Args:
        forward_mode: what its next forward does.
        reqs: its requests, in the order of every ``[bs]`` tensor.
        extend: a prefill's tokens.
        seq_lens: ``[bs]`` int64, a prefill's lengths; a decode's come through the relay.

    Attributes:
        req_pool_indices: ``[bs]`` int64 on the device; None where the requests changed since it was made. Written by
            schedule, in new memory each time: a forward in flight reads the old one.
        spec_info: what the last step left beside the relay; None where that is nothing.
    """

    forward_mode: ForwardMode
    reqs: list[Req]
    extend: ExtendInputs | None = None
    seq_lens: torch.Tensor | None = None
    req_pool_indices: torch.Tensor | None = field(default=None, repr=False)
    spec_info: DraftInput | None = field(default=None, repr=False)
    _mode: SamplingMode | None = field(default=None, repr=False, init=False)

    def is_empty(self) -> bool:
        return not self.reqs

    def batch_size(self) -> int:
        return len(self.reqs)

    def filter_batch(self) -> None:
        """Drops requests that ended or were retracted."""
        self.keep([req for req in self.reqs if req.finish_reason is None and req.req_pool_idx is not None])

    def keep(self, reqs: Sequence[Req]) -> None:
        """Goes on with these of its requests alone."""
        if len(reqs) == len(self.reqs):
            return
        if self.spec_info is not None and reqs:
            self.spec_info.filter_batch([at for at, req in enumerate(self.reqs) if req in reqs])
        self.reqs = list(reqs)
        self.req_pool_indices = self._mode = None

    def merge_batch(self, other: ScheduleBatch) -> None:
        """Takes the other's requests in, as rows that decode."""
        if self.is_empty():
            self.spec_info = other.spec_info
        elif other.reqs and self.spec_info is not None and other.spec_info is not None:
            self.spec_info = self.spec_info.merged_with(other.spec_info)
        self.reqs = self.reqs + other.reqs
        self.req_pool_indices = self._mode = None

    def sampling_mode(self) -> SamplingMode:
        """The cheapest mode that serves all of them, worked out when they change."""
        if self._mode is None:
            self._mode = sampling_mode(self.reqs)
        return self._mode

    def upload_rows(self, staging: Staging) -> torch.Tensor:
        """``req_pool_indices``, copied to the device if the requests changed; on ``schedule_stream``."""
        if self.req_pool_indices is None:
            self.req_pool_indices = staging.upload([req.row for req in self.reqs])
        return self.req_pool_indices

    def copy(self) -> LaunchedBatch:
        """Who is in the batch now; the scheduler changes it before the results are read."""
        return LaunchedBatch(self.forward_mode, tuple(self.reqs), tuple([req.epoch for req in self.reqs]))
