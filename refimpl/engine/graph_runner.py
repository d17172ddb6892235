"""``DecodeCudaGraphRunner``: one kind of forward, captured once for each batch size, and replayed.

Source: sgl-project/sglang, ``model_executor/runner/decode_cuda_graph_runner.py``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from refimpl import device as devices
from refimpl.engine.decode_inputs import DecodeInputs
from refimpl.engine.forward_batch import ForwardBatch
from refimpl.engine.pools import ReqToTokenPool, SWATokenToKVPoolAllocator
from refimpl.fences import ReadDone
from refimpl.model import ops
from refimpl.model.sampling import SamplingMode

Outputs = dict[str, torch.Tensor]
Body = Callable[[DecodeInputs, SamplingMode], Outputs]
"""What is captured: reads the snapshot, returns tensors ``[bs, …]`` by name."""


@dataclass(frozen=True)
class GraphSettings:
    """What all runners of an engine share.

    Args:
        device: ``"cuda"`` or ``"sim"``.
        batch_sizes: sizes to capture, ascending; a batch runs in the next larger one.
        forward_stream: where captures and replays run.
        graph_pool: memory of the graphs' own; replays of one stream may share it. What a graph leaves there holds until
            one that was captured before it replays again, so a step replays in the order of the captures, and its
            outputs are used up or copied before the next step.
        read_done: where the end of the shared reads is recorded.
    """

    device: str
    batch_sizes: tuple[int, ...]
    forward_stream: Any
    graph_pool: Any
    read_done: ReadDone


@dataclass(frozen=True)
class _Captured:
    graph: Any
    outputs: Outputs
    views: dict[int, Outputs] = field(default_factory=dict)

    def first(self, bs: int) -> Outputs:
        """The outputs of the first ``bs`` requests. Views are kept: making them costs the host as much as a launch."""
        if bs not in self.views:
            self.views[bs] = {name: rows[:bs] for name, rows in self.outputs.items()}
        return self.views[bs]


class DecodeCudaGraphRunner:
    """Captures ``body`` for each batch size; ``execute`` loads a batch and replays.

    Args:
        name: for messages.
        settings: shared by the runners of an engine.
        inputs: the static inputs; runners may share them, if one alone loads them.
        body: what a step does.
        req_to_token_pool: whose rows are copied into the snapshot.
        swa: the map of the sliding layers; None without.

    Attributes:
        shared_read_done_event: the mailbox: set where this runner has read the shared tables for the last time in
            this step, and taken by the scheduler's barrier.
    """

    def __init__(
        self,
        name: str,
        settings: GraphSettings,
        inputs: DecodeInputs,
        body: Body,
        req_to_token_pool: ReqToTokenPool,
        swa: SWATokenToKVPoolAllocator | None = None,
    ) -> None:
        self.name, self.settings, self.inputs, self.body = name, settings, inputs, body
        self._dev = devices.get(settings.device)
        self._pool, self._swa = req_to_token_pool, swa
        self._captured: dict[tuple[int, SamplingMode], _Captured] = {}
        self._first: dict[int, DecodeInputs] = {}
        self._read_done = self._dev.Event()
        self.shared_read_done_event: Any = None

    def capture_blocking(self, mode: SamplingMode) -> None:
        """Captures the graphs of a mode, largest first; the host blocks until the device is idle."""
        for size in reversed(self.settings.batch_sizes):
            self._captured[size, mode] = self._capture(size, mode)

    def bucket(self, batch_size: int) -> int:
        """The captured size that a batch runs in."""
        return self.settings.batch_sizes[bisect_left(self.settings.batch_sizes, batch_size)]

    def load_batch(self, batch: ForwardBatch, tokens: Mapping[str, torch.Tensor]) -> None:
        """Copies the batch into the static inputs: its rows of ``req_to_token`` become the page table.

        Args:
            batch: whose rows and lengths.
            tokens: what the step starts from, by the names of the inputs.

        Order:
            On ``forward_stream``; it reads ``req_to_token`` and ``full_to_swa``, which schedule writes.
        """
        bs, bucket, inputs = batch.batch_size, self.bucket(batch.batch_size), self.inputs
        if bs not in self._first:
            self._first[bs] = inputs.first(bs)
        ops.load_rows(
            self._pool.req_to_token,
            batch.req_pool_indices,
            batch.seq_lens,
            inputs.req_pool_indices,
            inputs.seq_lens,
            inputs.page_table,
            bucket,
        )
        if self._swa is not None and inputs.swa_page_table is not None:
            inputs.swa_page_table[:bucket].copy_(self._swa.translate(inputs.page_table[:bucket]))
        for name, rows in tokens.items():
            self._first[bs].tokens[name].copy_(rows)

    def execute(
        self, batch: ForwardBatch, tokens: Mapping[str, torch.Tensor], publish_read_done: bool = False
    ) -> Outputs:
        """Loads the batch and replays its graph.

        Args:
            batch: what to run.
            tokens: what it starts from.
            publish_read_done: whether no later runner of this step reads the shared tables.

        Returns:
            Views of the graph's outputs for the batch's requests. They are overwritten by the next replay: whoever
            reads them on another stream copies them first.

        Order:
            On ``forward_stream``; the host does not block.
        """
        self.load_batch(batch, tokens)
        if publish_read_done and self.settings.read_done is ReadDone.PRE_REPLAY:
            # The replay reads the snapshot alone.
            self._read_done.record(self.settings.forward_stream)
            self.shared_read_done_event = self._read_done
        return self.replay(batch)

    def outputs_of(self, size: int, mode: SamplingMode) -> Outputs:
        """The outputs of a captured graph: the graph of a later runner may read them where they lie."""
        return self._captured[size, mode].outputs

    def replay(self, batch: ForwardBatch) -> Outputs:
        """Replays the graph of the batch's size on what is loaded: by this runner, or by one that shares its inputs."""
        captured = self._captured[self.bucket(batch.batch_size), batch.mode]
        captured.graph.replay()
        return captured.first(batch.batch_size)

    def _capture(self, size: int, mode: SamplingMode) -> _Captured:
        inputs = self.inputs.first(size)
        with self.settings.forward_stream:
            # Once without a graph, so that kernels are compiled and libraries take their workspaces; on padding alone,
            # since requests may be running.
            inputs.clear()
            self.body(inputs, mode)
        # A capture bears nothing in flight beside it: the host blocks, for the step that runs too.
        self._dev.synchronize()
        graph = self._dev.CUDAGraph()
        with self._dev.graph(graph, pool=self.settings.graph_pool, stream=self.settings.forward_stream):
            outputs = self.body(inputs, mode)
        with self.settings.forward_stream:
            # A later runner's body may read these outputs before their first real replay: they must hold tokens.
            graph.replay()
        return _Captured(graph, outputs)
