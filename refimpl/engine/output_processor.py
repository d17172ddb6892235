"""What becomes of results: tokens to their requests, and what ended requests held back to the pools.

Source: sgl-project/sglang, ``managers/scheduler_components/batch_result_processor.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from refimpl.engine.batch import LaunchedBatch
from refimpl.engine.forward_batch import ForwardResult
from refimpl.engine.memory import CacheMemory
from refimpl.engine.request import FinishReason, Req


class Output(NamedTuple):
    """What a step brought a request.

    Args:
        rid: the request.
        token_ids: its new tokens.
        finish_reason: why it ended; None while it runs.
    """

    rid: int
    token_ids: list[int]
    finish_reason: FinishReason | None


class OutputProcessor:
    """Reads results, one step late in the overlapped loop.

    Args:
        memory: rows and slots.
        eos_token_id: ends a text.
    """

    def __init__(self, memory: CacheMemory, eos_token_id: int) -> None:
        self._memory, self._eos_token_id = memory, eos_token_id
        self._outputs: list[Output] = []

    def process_batch_result_blocking(self, launched: LaunchedBatch, result: ForwardResult) -> None:
        """Takes the tokens of a step; blocks the host until they are copied.

        Order:
            On ``schedule_stream``, behind the barrier of the forward launched last: rows and slots of requests that
            end here are free at once, while that forward still runs over them.
        """
        # Safe because: the host reads packed_cpu after copy_done.
        result.copy_done.synchronize()
        assert result.packed_cpu is not None, "the copy was queued when the step was launched"
        verified = not launched.forward_mode.is_extend()
        for req, epoch, row in zip(launched.reqs, launched.epochs, result.packed_cpu.tolist(), strict=True):
            # A request that ended or was retracted meanwhile had this forward for nothing.
            if req.finish_reason is None and req.epoch == epoch:
                self._take_tokens(req, row[: row[-1]], verified)

    def process_prebuilt(self, req: Req, first_token: int) -> None:
        """Takes the token that a prefill elsewhere brought along; it may end the request.

        Order:
            On ``schedule_stream``, behind the write of the request's row. The host does not block.
        """
        self._take_tokens(req, [first_token], verified=False)

    def ended(self, req: Req) -> None:
        """Tells that a request ended without a token."""
        self._outputs.append(Output(req.rid, [], req.finish_reason))

    def take(self) -> list[Output]:
        """What has come since the last call."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def _take_tokens(self, req: Req, tokens: list[int], verified: bool) -> None:
        if verified:
            req.kv_committed_len += len(tokens)
            req.accept_lens[len(tokens)] += 1
        taken = req.accept(tokens, self._eos_token_id)
        self._outputs.append(Output(req.rid, taken, req.finish_reason))
        if req.finish_reason is not None:
            self._memory.release(req)
        elif self._memory.window is not None:
            self._memory.maybe_evict_swa(req)
