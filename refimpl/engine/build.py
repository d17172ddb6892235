"""Puts an engine together: pools, streams, worker, relay and scheduler, in the order in which they need each other."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from refimpl import device as devices
from refimpl.engine.config import EngineConfig
from refimpl.engine.errors import EngineError
from refimpl.engine.future_map import FutureMap
from refimpl.engine.graph_runner import GraphSettings
from refimpl.engine.memory import BLOCKS_AHEAD, CacheMemory
from refimpl.engine.pools import (
    KVPool,
    ReqToTokenPool,
    SWAKVPool,
    SWATokenToKVPoolAllocator,
    TokenToKVPoolAllocator,
)
from refimpl.engine.sampling_table import SamplingTable
from refimpl.engine.scheduler import Scheduler
from refimpl.engine.streams import Streams, allocate_streams
from refimpl.engine.workers import Resources, make_worker
from refimpl.engine.workers.make import alloc_len_of
from refimpl.model.acceptance import ForcedAcceptance
from refimpl.model.config import ModelConfig
from refimpl.model.qwen3 import Qwen3
from refimpl.model.sampling import SamplingMode
from refimpl.model.weights_io import Draft


@dataclass(frozen=True)
class _Pools:
    req_to_token: ReqToTokenPool
    kv: KVPool | SWAKVPool
    allocator: TokenToKVPoolAllocator | SWATokenToKVPoolAllocator


def build_scheduler(
    target: Qwen3, draft: Draft | None, config: EngineConfig, forced: ForcedAcceptance | None = None
) -> Scheduler:
    """A scheduler for a target and its draft, on the device of the target.

    Args:
        target, draft: models; without a draft it decodes plainly.
        config: of the engine.
        forced: accept lengths made up for timing; None: earned.

    Raises:
        EngineError: a context that the target's positions do not cover, or a pool too small for one request.

    Order:
        The host blocks while graphs are captured.
    """
    device = target.device.type
    dev = devices.get(device)
    streams = allocate_streams(device)
    alloc_len = alloc_len_of(draft, config)
    reserve = BLOCKS_AHEAD * alloc_len
    _check_context(target.config, config, reserve)
    with torch.inference_mode():
        with streams.schedule_stream:
            pools = _pools(target, config, reserve, device, streams)
        rows = config.max_running_requests + 1
        sampling = SamplingTable(device, rows)
        graphs = GraphSettings(
            device,
            config.batch_sizes,
            streams.forward_stream,
            dev.graph_pool_handle(),
            config.fences.read_done,
            config.metadata_in_graph,
        )
        swa = pools.allocator if isinstance(pools.allocator, SWATokenToKVPoolAllocator) else None
        resources = Resources(config, target, pools.req_to_token, pools.kv, swa, sampling, streams, graphs, forced)
        worker = make_worker(resources, draft)
        future_map = FutureMap(device, rows, worker.relay_shapes, config.fences, streams)
    memory = CacheMemory(
        pools.req_to_token,
        pools.allocator,
        alloc_len,
        streams,
        config.plan_stream and worker.allocates_on_plan_stream,
        target.config.sliding_window,
    )
    scheduler = Scheduler(device, config, streams, worker, memory, future_map, sampling, target.config.eos_token_id)
    # Safe because: whichever stream zeroed a table has done so before any stream is given work on it.
    dev.synchronize()
    scheduler.capture_blocking(SamplingMode.GREEDY)
    return scheduler


def _pools(target: Qwen3, config: EngineConfig, reserve: int, device: str, streams: Streams) -> _Pools:
    """Memory for the requests that may run together."""
    model, rows = target.config, config.max_running_requests
    columns = config.max_context + reserve
    num_slots = config.num_slots or rows * columns
    req_to_token = ReqToTokenPool(rows, columns, device)
    callers = (streams.schedule_stream, streams.plan_stream)
    shape = (model.num_key_value_heads, model.head_dim, target.dtype, device)
    if model.sliding_window is None:
        kv: KVPool | SWAKVPool = KVPool(num_slots, model.num_hidden_layers, *shape)
        return _Pools(req_to_token, kv, TokenToKVPoolAllocator(num_slots, device, callers))
    num_swa_slots = min(config.num_swa_slots or num_slots, num_slots)
    kv = SWAKVPool(num_slots, num_swa_slots, model.num_hidden_layers, model.sliding_layers, *shape)
    return _Pools(req_to_token, kv, SWATokenToKVPoolAllocator(num_slots, num_swa_slots, device, callers))


def _check_context(model: ModelConfig, config: EngineConfig, reserve: int) -> None:
    positions = config.max_context + reserve
    if reserve >= model.max_position_embeddings:
        raise EngineError(
            f"a request takes {reserve} tokens ahead of its text, and the target has {model.max_position_embeddings} "
            "positions: use a smaller draft_topk, draft_tokens or draft_steps"
        )
    if positions > model.max_position_embeddings:
        raise EngineError(
            f"max_context={config.max_context} and {reserve} tokens ahead are more than the target's "
            f"{model.max_position_embeddings} positions: use at most {model.max_position_embeddings - reserve}"
        )
    if config.num_slots is not None and config.num_slots <= reserve + 1:
        raise EngineError(
            f"num_slots={config.num_slots}: one request takes {reserve} slots ahead of its text: give more"
        )
