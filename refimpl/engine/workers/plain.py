"""Plain decoding: one row a request, one token a step. The control of every speculative worker."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import torch

from refimpl.engine.decode_inputs import DecodeInputs, rows_behind
from refimpl.engine.forward_batch import ForwardBatch, ForwardResult, OnPublish, pack, pack_first
from refimpl.engine.future_map import RelayPayload, Shapes
from refimpl.engine.graph_runner import DecodeCudaGraphRunner, Outputs
from refimpl.engine.workers.base import Resources, Worker
from refimpl.engine.workers.target import TargetForward, first_tokens
from refimpl.model.sampling import SamplingMode


class PlainWorker(Worker):
    """The target alone.

    Order:
        ``decode`` is the one reader of the shared tables, so it has the mailbox.
    """

    block, alloc_len = 1, 1
    relay_shapes: Shapes = MappingProxyType({})

    def __init__(self, resources: Resources) -> None:
        self.resources, self.target = resources, TargetForward(resources)
        inputs = DecodeInputs.allocate(
            resources.graphs.device,
            max(resources.graphs.batch_sizes),
            resources.width,
            {"bonus_tokens": ((), torch.int64)},
            resources.target.config.sliding_window,
        )
        self.runner = DecodeCudaGraphRunner(
            "decode", resources.graphs, inputs, self._decode, resources.req_to_token_pool, resources.swa
        )

    @property
    def last_shared_read_runner(self) -> DecodeCudaGraphRunner:
        return self.runner

    def runners(self) -> tuple[DecodeCudaGraphRunner, ...]:
        return (self.runner,)

    def relay_into(self, batch_size: int) -> Mapping[str, torch.Tensor]:
        return self.runner.tokens_of(batch_size)

    def forward_extend(self, batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        on_publish(batch.seq_lens)
        hidden, _, _ = self.target.extend(batch)
        tokens = first_tokens(self.target, batch, hidden)
        return ForwardResult(pack_first(tokens, self.block), RelayPayload(tokens))

    def forward_decode(self, batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        assert batch.relay is not None, "a decode starts from what the last step relayed"
        out = self.runner.execute(batch, {"bonus_tokens": batch.relay.bonus_tokens}, publish_read_done=True)
        on_publish(out["new_seq_lens"])
        return ForwardResult(out["packed"], RelayPayload(out["tokens"]))

    def _decode(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        rows = rows_behind(inputs, 1)
        logits, _ = self.target.rows(inputs.tokens["bonus_tokens"][:, None], rows)
        new_seq_lens = inputs.seq_lens + 1
        tokens = self.target.choose(logits[:, 0], inputs.req_pool_indices, new_seq_lens, mode)
        packed = pack(tokens[:, None], torch.ones_like(tokens))
        return {"tokens": tokens, "new_seq_lens": new_seq_lens, "packed": packed}
