"""``DraftInput``: what a step's draft leaves for the next one beside the relay: new lengths once, an event longer.

Upstream carried the lengths here before the relay took them over; DFLASH kept the event behind that, as a fence of its
own around the rows that it appends to.

Source: sgl-project/sglang, ``EagleDraftInput`` and ``DFlashDraftInputV2``: pull requests 25465 and 25879 (May 2026),
29556 (June 2026).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from refimpl.engine.staging import Staging
from refimpl.engine.streams import Streams
from refimpl.fences import Fences, Lengths, VerifyDone, maybe_wait_verify_done, self_fence


@dataclass(frozen=True)
class DraftInputs:
    """Makes them for a scheduler, and knows who waits for them.

    Args:
        device: ``"cuda"`` or ``"sim"``.
        event: makes an event.
        fences, streams: the engine's.
        plan_stream: whether ``req_to_token`` is written on the plan stream.
        staging: through which the places of requests that stay travel.
    """

    device: str
    event: Any
    fences: Fences
    streams: Streams
    plan_stream: bool
    staging: Staging

    @property
    def needed(self) -> bool:
        """Whether anything is carried here at all: upstream's most recent engine carries nothing."""
        return self.carries_lengths or self.fences.verify_done is not VerifyDone.NONE

    @property
    def carries_lengths(self) -> bool:
        """Whether the new lengths are."""
        return self.fences.lengths is Lengths.DRAFT_INPUT

    def of_a_step(self) -> DraftInput:
        """The empty draft input of a step about to be launched."""
        return DraftInput(self)


@dataclass
class DraftInput:
    """What one step leaves.

    Args:
        made_by: whose fences order its reads.
        new_seq_lens: ``[bs]`` int64 on the device; forward writes it, schedule reads it; None where the relay has it.
        verify_done: recorded on ``forward_stream``, by EAGLE behind the verify, by DFLASH at the end of its step.
    """

    made_by: DraftInputs
    new_seq_lens: torch.Tensor | None = None
    verify_done: Any = None

    def publish(self, new_seq_lens: torch.Tensor) -> None:
        """Keeps a step's new lengths, in memory of their own: a graph's outputs are overwritten by its next replay.

        Order:
            On ``forward_stream``.
        """
        self.new_seq_lens = new_seq_lens.clone()

    def record(self) -> None:
        """Records ``verify_done`` behind what ``forward_stream`` was given; the host does not block."""
        self.verify_done = self.made_by.event()
        self.verify_done.record(self.made_by.streams.forward_stream)

    def maybe_wait_verify_done(self) -> None:
        """Orders what schedule is given from here on after ``verify_done``, as the fences have it.

        Order:
            On ``schedule_stream``. ``SYNCHRONIZE`` blocks the host.
        """
        by = self.made_by
        maybe_wait_verify_done(by.fences.verify_done, by.device, self.verify_done, by.streams.schedule_stream)

    def prepare_for_decode(self) -> None:
        """The fence in front of the rows that the next step appends to: around the lengths, or DFLASH's own.

        Order:
            On ``schedule_stream``. ``SYNCHRONIZE`` blocks the host.
        """
        by = self.made_by
        if by.carries_lengths:
            self.maybe_wait_verify_done()
        else:
            plan = by.streams.plan_stream if by.plan_stream else None
            self_fence(by.fences.verify_done, self.verify_done, plan, by.streams.schedule_stream)

    def seq_lens(self) -> torch.Tensor:
        """``[bs]`` int64: the lengths of the next step, taken on ``schedule_stream``."""
        assert self.new_seq_lens is not None, "the draft input carries the lengths"
        return self.new_seq_lens.clone()

    def seq_lens_cpu_blocking(self) -> tuple[int, ...]:
        """The same on the host, which blocks for all that ``schedule_stream`` was given."""
        assert self.new_seq_lens is not None, "the draft input carries the lengths"
        lengths: list[int] = self.new_seq_lens.cpu().tolist()
        return tuple(lengths)

    def filter_batch(self, kept: Sequence[int]) -> None:
        """Goes on with the requests at these places alone; on ``schedule_stream``."""
        if self.new_seq_lens is not None and len(kept) != len(self.new_seq_lens):
            self.maybe_wait_verify_done()
            self.new_seq_lens = self.new_seq_lens.index_select(0, self.made_by.staging.upload(kept))

    def merged_with(self, later: DraftInput) -> DraftInput:
        """Both, one behind the other; the later event comes behind the earlier one. On ``schedule_stream``."""
        if self.new_seq_lens is None or later.new_seq_lens is None:
            return later
        self.maybe_wait_verify_done()
        later.maybe_wait_verify_done()
        return replace(later, new_seq_lens=torch.cat([self.new_seq_lens, later.new_seq_lens]))
