"""Requests whose prefill ran elsewhere: their KV is brought by an agent, their rows of the relay are seeded here.

Upstream gives such a request its row together with its slots, before the transfer; here it gets the row when the KV has
arrived, so that a transfer need not be faster than a step for the row to come from a request that ended one step ago,
with its redundant forward in flight.

Source: sgl-project/sglang, ``disaggregation/decode.py`` (``get_new_prebuilt_batch``, ``process_prebuilt``) and
``speculative/eagle_disaggregation.py``; pull requests 30435 (July 2026) and 35748 (August 2026).
"""

from __future__ import annotations

from collections import deque

import torch

from refimpl import device as devices
from refimpl.engine.batch import ScheduleBatch
from refimpl.engine.config import EngineConfig
from refimpl.engine.errors import EngineError
from refimpl.engine.forward_mode import ForwardMode
from refimpl.engine.future_map import FutureMap, RelayPayload
from refimpl.engine.kv_transfer import KVTransferAgent, Prebuilt, Transfer
from refimpl.engine.memory import CacheMemory
from refimpl.engine.output_processor import OutputProcessor
from refimpl.engine.request import Req
from refimpl.engine.sampling_table import SamplingTable
from refimpl.engine.staging import Staging
from refimpl.engine.streams import Streams
from refimpl.fences import Lengths, before_prebuilt

POLL_US = 20.0
"""Between two looks at a transfer, where the host has nothing else to do."""


class PrebuiltQueue:
    """From a request's arrival to the first step that decodes it.

    Args:
        device: ``"cuda"`` or ``"sim"``.
        config, streams, memory, future_map, sampling: the engine's.
        agent: brings KV.
        outputs: is told of first tokens.
        ints, floats: pinned memory.
    """

    def __init__(
        self,
        device: str,
        config: EngineConfig,
        streams: Streams,
        memory: CacheMemory,
        future_map: FutureMap,
        sampling: SamplingTable,
        agent: KVTransferAgent,
        outputs: OutputProcessor,
        ints: Staging,
        floats: Staging,
    ) -> None:
        self._device, self._config, self._streams = device, config, streams
        self._memory, self._future_map, self._sampling = memory, future_map, sampling
        self.agent, self._outputs, self._ints, self._floats = agent, outputs, ints, floats
        self._arrived: deque[tuple[Req, Prebuilt]] = deque()
        self._transfers: deque[Transfer] = deque()

    def __bool__(self) -> bool:
        """Whether any request is here."""
        return bool(self._arrived or self._transfers)

    def add(self, req: Req, prebuilt: Prebuilt) -> None:
        """Takes a request in; it decodes once its KV has arrived and a row is free.

        Raises:
            EngineError: what it brings is not what this engine decodes from, or does not fit.
        """
        self._check(req, prebuilt)
        self._arrived.append((req, prebuilt))

    def get_new_prebuilt_batch(self, running: int) -> ScheduleBatch | None:
        """Requests whose KV has arrived, seeded; None if there are none, or no rows for them.

        Args:
            running: requests that have a row already.

        Order:
            On ``schedule_stream``. The host does not block: it asks how far transfers are, and goes on.
        """
        self._drop_aborted()
        self._allocate()
        for transfer in self._transfers:
            if transfer.may_begin():
                self.agent.begin(transfer)
        admitted = self._admit(running)
        if not admitted:
            return None
        self._seed(admitted)
        return ScheduleBatch(ForwardMode.PREBUILT, [transfer.req for transfer in admitted])

    def wait_blocking(self) -> None:
        """The host looks at the transfers until one may begin or has ended: there is nothing else to do."""
        while self._transfers and not any(one.may_begin() or one.has_ended() for one in self._transfers):
            devices.host_work(self._device, POLL_US)

    def give_back_blocking(self) -> bool:
        """Takes the slots of the request that came last, which starts over; False if none has slots.

        Order:
            On ``schedule_stream``. The host blocks until the agent no longer writes them.
        """
        if not self._transfers:
            return False
        transfer = self._transfers.pop()
        if transfer.done is not None:
            # Safe because: schedule hands the slots on after the agent wrote them.
            transfer.done.synchronize()
        self._free(transfer)
        self._arrived.appendleft((transfer.req, transfer.prebuilt))
        return True

    def clear(self) -> None:
        """Forgets every request, with nothing in flight; who owns the memory takes it back."""
        self._arrived.clear()
        self._transfers.clear()

    def _check(self, req: Req, prebuilt: Prebuilt) -> None:
        if self._config.fences.lengths is Lengths.DRAFT_INPUT:
            raise EngineError(
                f"request {req.rid} is prebuilt, and lengths={str(Lengths.DRAFT_INPUT)!r} has no relay of lengths to "
                f"seed: use lengths={str(Lengths.FUTURE_MAP)!r}"
            )
        if prebuilt.seq_len != len(req.prompt_ids):
            raise EngineError(
                f"request {req.rid} has {len(req.prompt_ids)} prompt tokens, and its prebuilt KV {prebuilt.seq_len}: "
                "hand over what a prefill of this very prompt left"
            )
        if prebuilt.kv.keys() != self.agent.pools.keys():
            raise EngineError(
                f"request {req.rid} brings KV of {', '.join(prebuilt.kv)}, and this engine keeps KV of "
                f"{', '.join(self.agent.pools)}: prefill with the same models"
            )
        room = min(self._config.max_context, self._memory.num_slots - self._memory.reserve)
        longest = prebuilt.seq_len + req.params.max_new_tokens
        if longest > room:
            raise EngineError(
                f"request {req.rid} may grow to {longest} tokens, and there is room for {room}: ask for fewer tokens, "
                "or raise max_context or num_slots"
            )

    def _drop_aborted(self) -> None:
        """Aborted on the way: slots that the agent writes stay taken until it is done."""
        self._arrived = deque(one for one in self._arrived if not one[0].finished())
        over = [one for one in self._transfers if one.req.finished() and (one.done is None or one.has_ended())]
        for transfer in over:
            self._transfers.remove(transfer)
            self._free(transfer)

    def _allocate(self) -> None:
        """Slots for requests that have arrived, in order, as long as the running ones keep their reserve."""
        memory = self._memory
        while self._arrived:
            req, prebuilt = self._arrived[0]
            if not memory.can_admit(req, memory.reserve * len(self._transfers)):
                return
            self._arrived.popleft()
            slots = memory.allocator.alloc(prebuilt.seq_len)
            assert slots is not None, "there was room, as was seen above"
            self._transfers.append(self.agent.prepare(req, prebuilt, slots))

    def _admit(self, running: int) -> list[Transfer]:
        """Those that have arrived get rows, in order, and tell their first tokens; which may end a request."""
        memory, admitted = self._memory, list[Transfer]()
        while self._transfers and running + len(admitted) < self._config.max_running_requests:
            transfer = self._transfers[0]
            fits = memory.reserve * (len(admitted) + 1) <= memory.allocator.available()
            if not fits or not transfer.has_ended() or not memory.take_row(transfer.req):
                break
            self._transfers.popleft()
            self._write_row(transfer)
            self._outputs.process_prebuilt(transfer.req, transfer.prebuilt.first_token)
            if not transfer.req.finished():
                admitted.append(transfer)
        return admitted

    def _write_row(self, transfer: Transfer) -> None:
        """Behind the barrier, as every other write of ``req_to_token``: the row may have had another owner."""
        req, n = transfer.req, transfer.prebuilt.seq_len
        self._memory.req_to_token_pool.req_to_token[req.row, :n].copy_(transfer.all_slots)
        req.kv_allocated_len = req.kv_committed_len = n

    def _seed(self, admitted: list[Transfer]) -> None:
        """What the first step reads of a step before it: lengths, tokens and draft state, into the relay's rows."""
        schedule, forward = self._streams.schedule_stream, self._streams.forward_stream
        rows = [transfer.req.row for transfer in admitted]
        lens = [transfer.prebuilt.seq_len for transfer in admitted]
        tokens = [transfer.prebuilt.first_token for transfer in admitted]
        indices, seq_lens, bonus_tokens = self._ints.upload(rows + lens + tokens).view(3, -1)
        names = admitted[0].landed
        extras = {name: torch.cat([transfer.landed[name] for transfer in admitted]) for name in names}

        before_prebuilt(self._config.fences.publish, schedule, forward)
        self._future_map.publish(indices, seq_lens, schedule)
        self._future_map.stash(indices, RelayPayload(bonus_tokens, extras))

        with forward:
            # Read and written on this stream alone, so that a row changes hands in its order.
            params = [transfer.req.params for transfer in admitted]
            self._sampling.write(self._ints.upload(rows), params, self._ints, self._floats)

    def _free(self, transfer: Transfer) -> None:
        self._memory.allocator.free(transfer.all_slots, transfer.prebuilt.seq_len)
