"""``StepPlan``: prepares a step's verify and draft extend on ``plan_stream``, beside the work of the forward stream.

Without a plan stream a worker loads and replays one graph after another on ``forward_stream``. With one, the page
tables, lengths and tokens of the later graphs are loaded while the draft runs, as far as ``draft_done`` allows.

Source: sgl-project/sglang, ``EAGLEWorkerV2.verify`` and ``MultiLayerEagleWorkerV2.verify`` with
``SGLANG_ENABLE_OVERLAP_PLAN_STREAM``, which is off by default since pull request 11724.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from refimpl import device as devices
from refimpl.engine.forward_batch import ForwardBatch
from refimpl.engine.graph_runner import DecodeCudaGraphRunner, Outputs
from refimpl.engine.streams import Streams
from refimpl.fences import DraftDone, extends_on_plan, fills_after_join, fork_plan, join_plan
from refimpl.fences.draft_done import marks_before_draft, marks_behind_draft, plans_drafted_tokens

Tokens = Mapping[str, torch.Tensor]
"""What a graph starts from, ``[bs, …]`` by the names of its inputs."""


class StepPlan:
    """What a worker does in place of ``execute`` where there is a plan stream.

    Args:
        device: ``"cuda"`` or ``"sim"``.
        variant: what the plan waits for.
        streams: the engine's.

    Attributes:
        draft_done: one event for all steps, recorded anew in each; a wait binds to the record before it, so the next
            record takes nothing away from a plan that still waits.

    Order:
        All methods are called with ``forward_stream`` current, and none blocks the host.
    """

    def __init__(self, device: str, variant: DraftDone, streams: Streams) -> None:
        self.variant, self.streams = variant, streams
        self._dev = devices.get(device)
        self.draft_done = self._dev.Event()

    def draft(self, runner: DecodeCudaGraphRunner, batch: ForwardBatch, tokens: Tokens) -> Outputs:
        """Drafts on ``forward_stream``, and records ``draft_done`` before the draft's forward or behind it."""
        runner.load_batch(batch, tokens)
        if marks_before_draft(self.variant):
            self.draft_done.record(self.streams.forward_stream)
        drafted = runner.replay(batch)
        if marks_behind_draft(self.variant):
            self.draft_done.record(self.streams.forward_stream)
        return drafted

    def drafted_before(self) -> None:
        """Records ``draft_done`` where the step before drafted, and this one has gathered its drafts."""
        if marks_before_draft(self.variant) or marks_behind_draft(self.variant):
            self.draft_done.record(self.streams.forward_stream)

    def verify(
        self, runner: DecodeCudaGraphRunner, batch: ForwardBatch, tokens: Tokens, publish_read_done: bool
    ) -> Outputs:
        """Loads the verify on ``plan_stream``, joins it, and replays on ``forward_stream``.

        Args:
            runner: of the verify.
            batch: what to run.
            tokens: the drafted ones and what else the verify starts from; all of them are static inputs of its graph.
            publish_read_done: as of ``DecodeCudaGraphRunner.execute``.
        """
        self._assert_on_forward()
        streams = self.streams
        fork_plan(self.variant, self.draft_done, streams.plan_stream, streams.schedule_stream, streams.forward_stream)
        with streams.plan_stream:
            runner.load_batch(batch, tokens if plans_drafted_tokens(self.variant) else {})
        join_plan(streams.plan_stream, streams.forward_stream)
        if fills_after_join(self.variant):
            runner.load_tokens(batch, tokens)
        return runner.replay(batch, publish_read_done)

    def extend(
        self, runner: DecodeCudaGraphRunner, batch: ForwardBatch, tokens: Tokens, publish_read_done: bool
    ) -> Outputs:
        """The same for the draft extend, which starts from nothing that the verify writes into its inputs.

        Order:
            Behind :meth:`verify`, whose fork the plan stream has waited for. ``read_done`` is recorded on
            ``forward_stream`` behind the join, so whoever waits for it comes after the plan's reads of the tables.
        """
        self._assert_on_forward()
        if not extends_on_plan(self.variant):
            return runner.execute(batch, tokens, publish_read_done)
        with self.streams.plan_stream:
            runner.load_batch(batch, tokens)
        join_plan(self.streams.plan_stream, self.streams.forward_stream)
        return runner.replay(batch, publish_read_done)

    def _assert_on_forward(self) -> None:
        assert self._dev.is_current(self.streams.forward_stream), "a step is planned from forward_stream"
