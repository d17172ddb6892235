"""Which worker a draft needs."""

from __future__ import annotations

from refimpl.engine.config import EngineConfig
from refimpl.engine.workers.base import Resources, Worker
from refimpl.engine.workers.plain import PlainWorker
from refimpl.model.weights_io import Draft


def make_worker(resources: Resources, draft: Draft | None) -> Worker:
    """The worker for a draft model; plain decoding without one."""
    if draft is None:
        return PlainWorker(resources)
    raise NotImplementedError


def alloc_len_of(draft: Draft | None, config: EngineConfig) -> int:
    """Slots behind the committed length that one step writes, at most."""
    if draft is None:
        return 1
    raise NotImplementedError
