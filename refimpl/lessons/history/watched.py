"""Every token that a forward brings, those too that are dropped since their request ended meanwhile; from outside.

What a redundant forward computes is thrown away, so a race that spoils it alone spoils no text. It is a race all the
same: with the right fences even these tokens are the ones that would have come next, since the old slots are written by
their next owner later on the same stream. Reading them takes the mask off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from unittest.mock import patch

from torch import Tensor

from refimpl.engine.batch import LaunchedBatch, ScheduleBatch
from refimpl.engine.forward_batch import ForwardResult
from refimpl.engine.future_map import RelayPayload
from refimpl.engine.scheduler import Scheduler

HIDDEN = "hidden_states"
"""What an EAGLE draft hands on from step to step."""

Stay = tuple[int, int]
"""A request's number and its epoch: from its prefill until it ends or is retracted."""


@dataclass
class Continued:
    """What the forwards of one stay brought, one behind the other.

    Args:
        begin: the tokens that its first forward started from.
        rows: the tokens of each forward.
        hidden: of each forward, what the draft handed on, ``[d]``; empty for workers that relay none.
    """

    begin: list[int]
    rows: list[list[int]] = field(default_factory=list)
    hidden: list[Tensor] = field(default_factory=list)

    @property
    def tokens(self) -> list[int]:
        """All that came, in order."""
        return [token for row in self.rows for token in row]


@dataclass
class EveryToken:
    """What was seen of a run: for each stay all that its forwards brought."""

    stays: dict[Stay, Continued] = field(default_factory=dict)
    _relayed: list[dict[str, Tensor]] = field(default_factory=list)

    def launches(self, batch: ScheduleBatch) -> None:
        """A forward is about to be launched: the first one of a stay starts from what the host knows."""
        for req in batch.reqs:
            self.stays.setdefault((req.rid, req.epoch), Continued(list(req.fill_ids)))

    def relays(self, payload: RelayPayload) -> None:
        """A forward hands its draft's state on; the copy is queued behind it, on the same stream."""
        self._relayed.append({name: rows.clone() for name, rows in payload.extras.items() if name == HIDDEN})

    def reads(self, launched: LaunchedBatch, result: ForwardResult) -> None:
        """The results of the oldest forward are there."""
        assert result.packed_cpu is not None, "the host has synchronized with the copy"
        relayed = self._relayed.pop(0)
        packed = result.packed_cpu.tolist()
        for place, (req, epoch) in enumerate(zip(launched.reqs, launched.epochs, strict=True)):
            stay = self.stays[req.rid, epoch]
            stay.rows.append(packed[place][: packed[place][-1]])
            stay.hidden += [rows[place] for rows in relayed.values()]


@contextmanager
def every_token(scheduler: Scheduler) -> Iterator[EveryToken]:
    """Looks on while a scheduler runs; its methods are wrapped, and put back afterwards.

    Args:
        scheduler: which; nobody else may use it meanwhile.

    Yields:
        What is seen. Its hidden states can be read when the device is idle.
    """
    seen, running = EveryToken(), False
    run_batch, stash = scheduler.run_batch, scheduler.future_map.stash
    process = scheduler.outputs.process_batch_result_blocking

    @wraps(run_batch)
    def launching(batch: ScheduleBatch) -> ForwardResult:
        nonlocal running
        seen.launches(batch)
        running = True
        try:
            return run_batch(batch)
        finally:
            running = False

    @wraps(stash)
    def relaying(future_indices: Tensor, payload: RelayPayload) -> None:
        # Seeds of requests whose prefill ran elsewhere are stashed too, outside of any forward.
        if running:
            seen.relays(payload)
        stash(future_indices, payload)

    @wraps(process)
    def processing(launched: LaunchedBatch, result: ForwardResult) -> None:
        process(launched, result)
        seen.reads(launched, result)

    with ExitStack() as stack:
        stack.enter_context(patch.object(scheduler, "run_batch", launching))
        stack.enter_context(patch.object(scheduler.future_map, "stash", relaying))
        stack.enter_context(patch.object(scheduler.outputs, "process_batch_result_blocking", processing))
        yield seen
