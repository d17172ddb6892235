"""The agent that brings the KV of a request from the rank that prefilled it.

In reality a network card writes into the pools while the host and the device go on. It is part of no stream's order, so
a stream of its own stands for it here, which waits for nobody and which nobody waits for: the host alone asks how far
things are, and says when to begin.

Source: sgl-project/sglang, ``disaggregation/decode.py``, whose transfers are polled too; pull request 36738, on KV that
is written into the slots of a request whose redundant forward has not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from refimpl import device as devices
from refimpl.engine.memory import CacheMemory
from refimpl.engine.pools import KVPool, SWAKVPool, SWATokenToKVPoolAllocator
from refimpl.engine.request import Req
from refimpl.engine.streams import Streams, another_stream
from refimpl.engine.workers.base import Worker

TARGET, SLIDING, DRAFT = "target", "sliding", "draft"
"""The pools that a token has KV in."""


@dataclass(frozen=True)
class Prebuilt:
    """What a prefill leaves for the rank that decodes.

    Args:
        first_token: the token behind the prompt; not in the cache yet.
        seq_len: tokens of the prompt.
        kv: by pool, ``[2, layers, seq_len, kv_heads, head_dim]`` on the device, complete: whoever made it has run.
        extras: by name, what the worker relays beside the token, ``[1, …]``.

    Raises:
        ValueError: keys and values, or extras, of another number of tokens.
    """

    first_token: int
    seq_len: int
    kv: Mapping[str, torch.Tensor]
    extras: Mapping[str, torch.Tensor]

    def __post_init__(self) -> None:
        for name, kv in self.kv.items():
            if kv.dim() != 5 or kv.shape[2] != self.seq_len:
                raise ValueError(
                    f"Prebuilt: kv[{name!r}] has the shape {list(kv.shape)}: "
                    f"give [2, layers, {self.seq_len}, kv_heads, head_dim]"
                )
        for name, rows in self.extras.items():
            if rows.shape[0] != 1:
                raise ValueError(f"Prebuilt: extras[{name!r}] has {rows.shape[0]} rows: give the one of this request")


@dataclass(eq=False)
class Transfer:
    """One request's KV on its way. The host owns it.

    Args:
        req: whose.
        prebuilt: what is brought.
        slots: by pool, ``[seq_len]`` integers on the device: where it goes.
        landed: by name, where the extras go, zeros where there are none; memory of ``schedule_stream``.
        allocated: recorded on ``schedule_stream`` behind the allocation of all that.
        quiet: recorded on ``forward_stream`` at the same time.
        done: recorded by the agent behind its last write; None before it has begun.
    """

    req: Req
    prebuilt: Prebuilt
    slots: Mapping[str, torch.Tensor]
    landed: Mapping[str, torch.Tensor]
    allocated: Any
    quiet: Any
    done: Any = None

    @property
    def all_slots(self) -> torch.Tensor:
        """``[seq_len]`` int32: those that ``req_to_token`` names."""
        return self.slots[TARGET]

    def may_begin(self) -> bool:
        """Whether its slots are known, and the forward that their last owner may have in flight has run."""
        # Safe because: the host lets the agent write slots after forward wrote them for the last owner.
        return self.done is None and self.allocated.query() and self.quiet.query()

    def has_ended(self) -> bool:
        """Whether all of it is there."""
        # Safe because: the host launches the forward that reads this KV after the agent wrote it.
        return self.done is not None and bool(self.done.query())


class KVTransferAgent:
    """Writes KV beside the engine.

    Args:
        device: ``"cuda"`` or ``"sim"``.
        streams: the engine's, none of which it uses.
        worker: whose pools.
        memory: whose slots.
    """

    def __init__(self, device: str, streams: Streams, worker: Worker, memory: CacheMemory) -> None:
        self._device, self._streams, self._memory = device, streams, memory
        self.pools = pools_of(worker)
        self._relay_shapes = worker.relay_shapes

    @cached_property
    def kv_transfer_stream(self) -> Any:
        """Stands for the network card; made for the first transfer."""
        return another_stream(self._device, self._streams)

    def prepare(self, req: Req, prebuilt: Prebuilt, slots: torch.Tensor) -> Transfer:
        """A transfer into slots that were allocated now.

        Order:
            On ``schedule_stream``; the host does not block.
        """
        dev = devices.get(self._device)
        landed = {
            name: torch.zeros(1, *shape, dtype=dtype, device=self._device)
            for name, (shape, dtype) in self._relay_shapes.items()
        }
        where = slots_by_pool(self.pools, slots, self._memory)
        transfer = Transfer(req, prebuilt, where, landed, dev.Event(), dev.Event())
        transfer.allocated.record(self._streams.schedule_stream)
        transfer.quiet.record(self._streams.forward_stream)
        return transfer

    def begin(self, transfer: Transfer) -> None:
        """Hands a transfer that may begin to the agent; the host does not block."""
        prebuilt, done = transfer.prebuilt, devices.get(self._device).Event()
        with self.kv_transfer_stream, devices.cost(self._device, "kv transfer"):
            for name, pool in self.pools.items():
                pool.put(transfer.slots[name], prebuilt.kv[name])
            for name, rows in prebuilt.extras.items():
                transfer.landed[name].copy_(rows)
        done.record(self.kv_transfer_stream)
        transfer.done = done


def pools_of(worker: Worker) -> dict[str, KVPool]:
    """The pools in which a token of a worker's requests has KV."""
    kv_pool = worker.resources.kv_pool
    pools = {TARGET: kv_pool.full, SLIDING: kv_pool.swa} if isinstance(kv_pool, SWAKVPool) else {TARGET: kv_pool}
    # Plain decoding has no draft, and no pool of one.
    draft_pool: KVPool | None = getattr(worker, "draft_pool", None)
    return pools if draft_pool is None else {**pools, DRAFT: draft_pool}


def slots_by_pool(pools: Mapping[str, KVPool], slots: torch.Tensor, memory: CacheMemory) -> dict[str, torch.Tensor]:
    """Where tokens lie in each pool: the draft's has the target's slots, the sliding layers' their twins.

    Args:
        pools: as of :func:`pools_of`.
        slots: ``[n]`` int32, of the target's pool; tokens within the window.
        memory: whose allocator pairs the slots.

    Order:
        On ``schedule_stream``, which writes the map.
    """
    found = dict.fromkeys(pools, slots)
    if isinstance(memory.allocator, SWATokenToKVPoolAllocator):
        found[SLIDING] = memory.allocator.translate(slots)
    return found
