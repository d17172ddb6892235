"""A rank that prefills for another one: same models, memory of its own.

Source: sgl-project/sglang, ``disaggregation/prefill.py``.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from refimpl import device as devices
from refimpl.engine.build import build_scheduler
from refimpl.engine.config import EngineConfig
from refimpl.engine.kv_transfer import Prebuilt, pools_of, slots_by_pool
from refimpl.engine.request import Req, SamplingParams
from refimpl.engine.scheduler import Scheduler
from refimpl.fences import Fences
from refimpl.model.qwen3 import Qwen3
from refimpl.model.weights_io import Draft


class PrefillRank:
    """Runs the prefill of one request after the other, and hands over what it left.

    Args:
        target, draft: those of the rank that decodes.
        config: its shape; the fences here are the right ones, whatever are tried there.

    Order:
        The host blocks while graphs are captured.
    """

    def __init__(self, target: Qwen3, draft: Draft | None, config: EngineConfig) -> None:
        alone = replace(config, max_running_requests=1, num_slots=None, num_swa_slots=None, fences=Fences())
        self._scheduler = build_scheduler(target, draft, alone)
        self._pools = pools_of(self._scheduler.worker)

    @classmethod
    def beside(cls, scheduler: Scheduler) -> PrefillRank:
        """A rank with the models of the scheduler that is to decode, in the same process."""
        worker = scheduler.worker
        # Plain decoding has no draft.
        return cls(worker.resources.target, getattr(worker, "draft", None), scheduler.config)

    def prefill_blocking(self, prompt_ids: list[int], params: SamplingParams) -> Prebuilt:
        """The first token of a prompt, its KV, and what the draft needs besides.

        Order:
            The host blocks until the device is idle, so what it returns is complete on any stream.
        """
        scheduler = self._scheduler
        memory, future_map = scheduler.memory, scheduler.future_map
        scheduler.waiting_queue.append(Req(0, prompt_ids, params))
        with torch.inference_mode(), scheduler.schedule_stream:
            batch = scheduler.get_new_batch_prefill()
            assert batch is not None, "an idle rank takes a prompt that fits its context"
            result = scheduler.run_batch(batch)
            (req,), n = batch.reqs, len(prompt_ids)
            # Safe because: schedule copies what forward wrote, relay rows and KV, after the tail of its stream.
            scheduler.schedule_stream.wait_stream(scheduler.forward_stream)
            slots = memory.req_to_token_pool.req_to_token[req.row, :n].clone()
            where = slots_by_pool(self._pools, slots, memory)
            kv = {name: pool.take(where[name]) for name, pool in self._pools.items()}
            row = torch.tensor([req.row], device=scheduler.device)
            relayed = future_map.resolve_forward_inputs(row, result.relay.extras)
            memory.release(req)
            devices.get(scheduler.device).synchronize()
            return Prebuilt(int(relayed.bonus_tokens), n, kv, relayed.extras)
