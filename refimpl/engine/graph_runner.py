"""``DecodeCudaGraphRunner``: one kind of forward, captured once for each batch size, and replayed.

Each forward is one graph. Upstream has graphs in pieces besides, with attention run eagerly between them. Their reads
lie between replays, so that no event in front of the last piece says enough: such a runner has to record behind it, or
to leave the barrier coarse (``UNKNOWN``). That is our reading; pull request 34052 names a flag that stood for it.

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
from refimpl.engine.metadata import LiveMetadata, SnapshotMetadata
from refimpl.engine.pools import ReqToTokenPool, SWATokenToKVPoolAllocator
from refimpl.fences import ReadDone, SharedReadBoundary, recorded_at
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
        metadata_in_graph: whether graphs read the shared tables again, instead of the snapshot alone.
    """

    device: str
    batch_sizes: tuple[int, ...]
    forward_stream: Any
    graph_pool: Any
    read_done: ReadDone
    metadata_in_graph: bool = False


@dataclass(frozen=True)
class _Captured:
    graph: Any
    inputs: DecodeInputs
    outputs: Outputs
    read_done: Any
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
        shares_inputs: another runner loads the inputs, and has read the tables for both: this one reads none.

    Attributes:
        boundary: where a replay reads the shared tables last, as the backend declares.
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
        shares_inputs: bool = False,
    ) -> None:
        self.name, self.settings, self.inputs, self.body = name, settings, inputs, body
        self._dev = devices.get(settings.device)
        self._shares_inputs = shares_inputs
        backend = LiveMetadata if settings.metadata_in_graph and not shares_inputs else SnapshotMetadata
        self._metadata = backend(req_to_token_pool, swa)
        self.boundary = self._metadata.boundary
        self._records_at = recorded_at(settings.read_done, self.boundary)
        self._captured: dict[tuple[int, SamplingMode], _Captured] = {}
        self._first: dict[int, DecodeInputs] = {}
        self._read_done = self._dev.Event()
        self.shared_read_done_event: Any = None

    def capture_blocking(self, mode: SamplingMode, publishes_read_done: bool = False) -> None:
        """Captures the graphs of a mode, largest first; the host blocks until the device is idle.

        Args:
            mode: how tokens are chosen.
            publishes_read_done: whether replays of it may be asked to publish: a graph that records ``read_done``
                itself has a node for it.
        """
        for size in reversed(self.settings.batch_sizes):
            self._captured[size, mode] = self._capture(size, mode, publishes_read_done)

    def bucket(self, batch_size: int) -> int:
        """The captured size that a batch runs in."""
        return self.settings.batch_sizes[bisect_left(self.settings.batch_sizes, batch_size)]

    def load_batch(self, batch: ForwardBatch, tokens: Mapping[str, torch.Tensor]) -> None:
        """Copies the batch into the static inputs: its rows of ``req_to_token`` become the page table.

        Args:
            batch: whose rows and lengths.
            tokens: what the step starts from, by the names of the inputs.

        Order:
            On ``forward_stream``, or on one that it waits for before the replay; it reads ``req_to_token`` and
            ``full_to_swa``, which schedule writes.
        """
        assert not self._shares_inputs, f"{self.name} runs on what another runner loads"
        bucket = self.bucket(batch.batch_size)
        self._metadata.init_forward_metadata_out_graph(batch.req_pool_indices, batch.seq_lens, self.inputs, bucket)
        self.load_tokens(batch, tokens)

    def load_tokens(self, batch: ForwardBatch, tokens: Mapping[str, torch.Tensor]) -> None:
        """Copies what a step starts from alone, by the names of the inputs; on the current stream."""
        inputs = self.tokens_of(batch.batch_size)
        for name, rows in tokens.items():
            # The relay may have been gathered into them.
            if rows is not inputs[name]:
                inputs[name].copy_(rows)

    def tokens_of(self, batch_size: int) -> Mapping[str, torch.Tensor]:
        """The static inputs that a step of so many requests starts from, ``[bs, …]`` by name; the same at each call."""
        if batch_size not in self._first:
            self._first[batch_size] = self.inputs.first(batch_size)
        return self._first[batch_size].tokens

    def execute(
        self, batch: ForwardBatch, tokens: Mapping[str, torch.Tensor], publish_read_done: bool = False
    ) -> Outputs:
        """Loads the batch and replays its graph.

        Args:
            batch: what to run.
            tokens: what it starts from.
            publish_read_done: whether no later runner of this step reads the shared tables.

        Returns:
            Views of the graph's outputs for the batch's requests. They are overwritten by the next replay, and an input
            that is handed on by the next load: whoever reads them on another stream copies them first.

        Order:
            On ``forward_stream``; the host does not block.
        """
        self.load_batch(batch, tokens)
        return self.replay(batch, publish_read_done)

    def outputs_of(self, size: int, mode: SamplingMode) -> Outputs:
        """The outputs of a captured graph: the graph of a later runner may read them where they lie."""
        return self._captured[size, mode].outputs

    def replay(self, batch: ForwardBatch, publish_read_done: bool = False) -> Outputs:
        """Replays the graph of the batch's size on what is loaded: by this runner, or by one that shares its inputs.

        Args, Returns, Order: as of ``execute``.
        """
        captured = self._captured[self.bucket(batch.batch_size), batch.mode]
        if not publish_read_done:
            captured.graph.replay()
            return captured.first(batch.batch_size)
        match self._records_at:
            case SharedReadBoundary.PRE_REPLAY:
                self._record_read_done()
                captured.graph.replay()
            case SharedReadBoundary.IN_REPLAY:
                captured.graph.replay()
                # A wait from here on is bound to what this launch records. A graph without a node leaves the mailbox
                # empty, which makes the barrier coarse; upstream records before the replay then, which says too little.
                self.shared_read_done_event = captured.read_done
            case SharedReadBoundary.POST_REPLAY:
                captured.graph.replay()
                self._record_read_done()
            case SharedReadBoundary.UNKNOWN:
                captured.graph.replay()
        return captured.first(batch.batch_size)

    def _record_read_done(self) -> None:
        self._read_done.record(self.settings.forward_stream)
        self.shared_read_done_event = self._read_done

    def _capture(self, size: int, mode: SamplingMode, publishes_read_done: bool) -> _Captured:
        inputs, forward_stream = self.inputs.first(size), self.settings.forward_stream
        in_replay = publishes_read_done and self._records_at is SharedReadBoundary.IN_REPLAY
        read_done = self._dev.Event(external=True) if in_replay else None
        with forward_stream:
            # Once without a graph, so that kernels are compiled and libraries take their workspaces; on padding alone,
            # since requests may be running.
            inputs.clear()
            self._metadata.init_forward_metadata_in_graph(inputs)
            self.body(inputs, mode)
        # A capture bears nothing in flight beside it: the host blocks, for the step that runs too.
        self._dev.synchronize()
        graph = self._dev.CUDAGraph()
        with self._dev.graph(graph, pool=self.settings.graph_pool, stream=forward_stream):
            self._metadata.init_forward_metadata_in_graph(inputs)
            if read_done is not None:
                # A node of the graph: each replay records the event anew, behind its reads of the tables.
                read_done.record(forward_stream)
            outputs = self.body(inputs, mode)
        with forward_stream:
            # A later runner's body may read these outputs before their first real replay: they must hold tokens.
            graph.replay()
        return _Captured(graph, inputs, outputs, read_done)
