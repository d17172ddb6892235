"""``StepLengths``: how a step's lengths reach the next one, whichever way the fences have them travel."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from refimpl.engine.batch import ScheduleBatch
from refimpl.engine.draft_input import DraftInput, DraftInputs
from refimpl.engine.forward_batch import ForwardBatch
from refimpl.engine.future_map import FutureMap


@dataclass(eq=False)
class StepLengths:
    """By the relay, as upstream today; or by the draft input, as before.

    Args:
        future_map: the relay.
        draft_inputs: makes what a step leaves beside it.
        verify_done_at_end: whether ``verify_done`` ends a decode, as DFLASH's did, or follows the publish.
    """

    future_map: FutureMap
    draft_inputs: DraftInputs
    verify_done_at_end: bool

    def draft_input(self) -> DraftInput | None:
        """That of a step about to be launched; None where everything travels by the relay."""
        return self.draft_inputs.of_a_step() if self.draft_inputs.needed else None

    def resolve(self, batch: ScheduleBatch, future_indices: torch.Tensor) -> torch.Tensor:
        """``[bs]`` int64 on the device: lengths before a decode, after a prefill.

        Order:
            On ``schedule_stream``, behind the fence of whoever carries them; the host does not block.
        """
        if batch.extend is not None:
            assert batch.seq_lens is not None, "a prefill brings its lengths along"
            return batch.seq_lens
        if self.draft_inputs.carries_lengths:
            assert batch.spec_info is not None, "the last step left its draft input"
            return batch.spec_info.seq_lens()
        return self.future_map.resolve_seq_lens(future_indices)

    def resolve_cpu_blocking(self, batch: ScheduleBatch) -> tuple[int, ...]:
        """The same on the host, which blocks for them but before a prefill."""
        if batch.extend is not None:
            return batch.extend.lens
        if self.draft_inputs.carries_lengths:
            assert batch.spec_info is not None, "the last step left its draft input"
            return batch.spec_info.seq_lens_cpu_blocking()
        return tuple(self.future_map.resolve_seq_lens_cpu_blocking([req.row for req in batch.reqs]))

    def publish(self, batch: ForwardBatch, draft_input: DraftInput | None, new_seq_lens: torch.Tensor) -> None:
        """Leaves the new lengths for the next step.

        Order:
            On ``forward_stream``, as soon as they exist.
        """
        if draft_input is not None and self.draft_inputs.carries_lengths:
            draft_input.publish(new_seq_lens)
        else:
            self.future_map.publish(batch.req_pool_indices, new_seq_lens)
        if draft_input is not None and batch.extend is None and not self.verify_done_at_end:
            draft_input.record()

    def end(self, batch: ForwardBatch, draft_input: DraftInput | None) -> None:
        """Records ``verify_done`` where it ends the step: behind a prefill, and behind DFLASH's decode."""
        if draft_input is not None and (batch.extend is not None or self.verify_done_at_end):
            draft_input.record()
