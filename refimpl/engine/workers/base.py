"""What the scheduler asks of a worker: a prefill, a decode step, and who read the shared tables last."""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

from refimpl import device as devices
from refimpl.engine.config import EngineConfig
from refimpl.engine.forward_batch import ForwardBatch, ForwardResult, OnPublish
from refimpl.engine.future_map import NOWHERE, Shapes
from refimpl.engine.graph_runner import DecodeCudaGraphRunner, GraphSettings
from refimpl.engine.pools import KVPool, ReqToTokenPool, SWAKVPool, SWATokenToKVPoolAllocator
from refimpl.engine.sampling_table import SamplingTable
from refimpl.engine.streams import Streams
from refimpl.model.acceptance import ForcedAcceptance
from refimpl.model.qwen3 import Qwen3
from refimpl.model.sampling import SamplingMode


@dataclass(frozen=True)
class Resources:
    """What a worker builds on.

    Args:
        config: of the engine.
        target: the model.
        req_to_token_pool, kv_pool: the target's memory; drafts have pools of their own with the same slots.
        swa: the map of the sliding layers; None without.
        sampling: parameters of the running requests.
        streams: the engine's.
        graphs: what graph runners share.
        forced: accept lengths drawn from a histogram instead of earned, for timing with random weights; None: earned.
    """

    config: EngineConfig
    target: Qwen3
    req_to_token_pool: ReqToTokenPool
    kv_pool: KVPool | SWAKVPool
    swa: SWATokenToKVPoolAllocator | None
    sampling: SamplingTable
    streams: Streams
    graphs: GraphSettings
    forced: ForcedAcceptance | None = None

    @property
    def width(self) -> int:
        """Columns of ``req_to_token``."""
        return self.req_to_token_pool.max_context


class Worker(ABC):
    """One way to decode. Everything it does runs on ``forward_stream``, and nothing blocks the host.

    Attributes:
        resources: what it builds on.
        block: tokens that a step emits for a request, at most.
        alloc_len: slots behind the committed length that a step writes, at most.
        relay_shapes: what a step leaves for the next, beside the token.
        last_shared_read_runner: the runner that reads the shared tables last in a step; it has the mailbox.
        allocates_on_plan_stream: whether a plan stream writes ``req_to_token``; others prepare their verify there.
        verify_done_at_end: whether ``verify_done``, where an engine has it, ends the step instead of the verify.
    """

    resources: Resources
    block: int
    alloc_len: int
    relay_shapes: Shapes
    allocates_on_plan_stream: bool = True
    verify_done_at_end: bool = False

    @property
    @abstractmethod
    def last_shared_read_runner(self) -> DecodeCudaGraphRunner: ...

    def relayed(self, mode: SamplingMode) -> Iterable[str]:
        """Which of ``relay_shapes`` a step in this mode reads."""
        return self.relay_shapes

    def relay_into(self, batch_size: int) -> Mapping[str, torch.Tensor]:
        """Static inputs that a step's relay is gathered into, by name: a graph that starts from it finds it there.

        Without them it is gathered into memory of its own, and copied when the graph's batch is loaded: on a plan
        stream, for one, where the inputs may still be those of a replay.

        Order:
            Gathered on ``forward_stream``, behind the last replay that read them.
        """
        return NOWHERE

    @abstractmethod
    def forward_extend(self, batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        """Prefill: runs the prompts, samples one token a request, and prepares the draft."""

    @abstractmethod
    def forward_decode(self, batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        """One step of every request of the batch."""

    @abstractmethod
    def runners(self) -> tuple[DecodeCudaGraphRunner, ...]:
        """Its graph runners."""

    def publishes(self, runner: DecodeCudaGraphRunner) -> bool:
        """Whether a runner publishes ``read_done``: the last reader of the step alone."""
        return runner is self.last_shared_read_runner

    def forward_batch_generation(self, batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        """Either of them, by the batch's mode; on ``forward_stream``."""
        graphs = self.resources.graphs
        assert devices.get(graphs.device).is_current(graphs.forward_stream), "a forward is on forward_stream"
        if batch.forward_mode.is_extend():
            return self.forward_extend(batch, on_publish)
        return self.forward_decode(batch, on_publish)

    def capture_blocking(self, mode: SamplingMode) -> None:
        """Captures the graphs of a mode; the host blocks meanwhile."""
        # An engine that was dropped is freed now: its graphs cannot be while another stream captures.
        gc.collect()
        with torch.inference_mode():
            for runner in self.runners():
                runner.capture_blocking(mode, self.publishes(runner))
