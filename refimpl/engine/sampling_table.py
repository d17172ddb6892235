"""The sampling parameters of all running requests, on the device, by row."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from refimpl.engine.request import Req, SamplingParams
from refimpl.engine.staging import Staging
from refimpl.model.sampling import SamplingMode, SamplingTensors


def sampling_mode(reqs: Sequence[Req]) -> SamplingMode:
    """The cheapest mode that serves every request of a batch; known to the host, so it chooses the graph."""
    if any(req.params.filtered for req in reqs):
        return SamplingMode.FILTERED
    return SamplingMode.GREEDY if all(req.params.greedy for req in reqs) else SamplingMode.SAMPLED


class SamplingTable:
    """A row for each row of ``req_to_token``; graphs gather theirs.

    Order:
        ``write`` and every reader run on ``forward_stream``: a row changes hands in stream order, without a fence. So
        a finished request's redundant forward, still queued, reads its own parameters.
    """

    def __init__(self, device: str, rows: int) -> None:
        self.table = SamplingTensors(
            temperature=torch.zeros(rows, dtype=torch.float32, device=device),
            top_k=torch.zeros(rows, dtype=torch.int32, device=device),
            top_p=torch.ones(rows, dtype=torch.float32, device=device),
            seed=torch.zeros(rows, dtype=torch.int64, device=device),
        )

    def write(self, indices: torch.Tensor, params: Sequence[SamplingParams], ints: Staging, floats: Staging) -> None:
        """Takes up the parameters of requests that begin; the host does not block."""
        numbers = floats.upload([p.temperature for p in params] + [p.top_p for p in params]).view(2, -1)
        counts = ints.upload([p.top_k for p in params] + [p.seed for p in params]).view(2, -1)
        self.table.temperature[indices] = numbers[0]
        self.table.top_p[indices] = numbers[1]
        self.table.top_k[indices] = counts[0].int()
        self.table.seed[indices] = counts[1]

    def rows(self, indices: torch.Tensor) -> SamplingTensors:
        """``[bs]`` of each parameter."""
        return SamplingTensors(
            temperature=self.table.temperature.index_select(0, indices),
            top_k=self.table.top_k.index_select(0, indices),
            top_p=self.table.top_p.index_select(0, indices),
            seed=self.table.seed.index_select(0, indices),
        )
