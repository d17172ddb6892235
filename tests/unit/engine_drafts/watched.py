"""Engines whose every decode step is written down, and what an oracle needs to say what it should be."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from refimpl import device as devices
from refimpl.engine.build import build_scheduler
from refimpl.engine.config import EngineConfig
from refimpl.engine.forward_batch import ForwardBatch, ForwardResult, OnPublish
from refimpl.engine.request import Req, SamplingParams
from refimpl.lessons.lossless.models import VOCAB_SIZE, tiny_draft, tiny_target
from refimpl.model.acceptance import ForcedAcceptance
from refimpl.model.attention import DenseAttention, DenseCache
from refimpl.model.qwen3 import Qwen3
from refimpl.model.sampling import Purpose, SamplingMode, SamplingTensors, draw
from refimpl.model.weights_io import Draft
from refimpl.train.propose import Choose

PROMPTS = ((5, 9, 2, 7, 7, 1, 30), (3,), (11, 12))
"""One more than a power of two, so that batches are padded; one shorter than any chain."""
GREEDY = SamplingParams(max_new_tokens=10, ignore_eos=True)
MIXED = tuple(replace(GREEDY, temperature=t, top_k=k, seed=s) for t, k, s in ((0.9, 0, 3), (0.0, 0, 1), (1.2, 9, 2)))
ATTENTIVE = 4.0


@dataclass(frozen=True)
class Step:
    """A decode step of one request: tokens committed before and after it, and by name what it left."""

    req: Req
    seq_len: int
    new_seq_len: int
    mode: SamplingMode
    seen: dict[str, Tensor]

    @property
    def text(self) -> list[int]:
        """The tokens committed before it, and the bonus token."""
        return (self.req.prompt_ids + self.req.output_ids)[: self.seq_len + 1]

    @property
    def text_after(self) -> list[int]:
        """The same after it."""
        return (self.req.prompt_ids + self.req.output_ids)[: self.new_seq_len + 1]


@dataclass
class Watched:
    """What a run left: its requests, and their steps up to the end of their texts."""

    reqs: list[Req]
    steps: list[Step] = field(default_factory=list)

    @property
    def outputs(self) -> list[list[int]]:
        return [req.output_ids for req in self.reqs]


@cache
@torch.no_grad()
def run(
    kind: str,
    params: tuple[SamplingParams, ...] = (GREEDY,) * len(PROMPTS),
    forced: int | None = None,
    window: int | None = None,
    device: str = "sim",
    knowing: bool = True,
    **options: Any,
) -> Watched:
    """Decodes the prompts with a tiny target and its draft; requests hold rows 1, 2, … in their order.

    Args:
        kind: of the draft, or "none".
        params: of each prompt.
        forced: an accept length.
        window: of the target's second layer.
        device: "sim" or "cuda".
        knowing: as of `draft_of`.
        options: of the engine.
    """
    dev = devices.get(device)
    target = tiny_target(device, window=window)
    draft = None if kind == "none" else draft_of(kind, target, knowing)
    config = EngineConfig(**{"max_running_requests": len(PROMPTS) + 1, "max_context": 48, **options})
    lengths = None if forced is None else ForcedAcceptance.fixed(forced, device)
    scheduler = build_scheduler(target, draft, config, lengths)
    reqs = [Req(i, list(prompt), one) for i, (prompt, one) in enumerate(zip(PROMPTS, params, strict=True))]
    watched, launches = Watched(reqs), list[Launch]()
    if draft is not None:
        _watch(scheduler.worker, launches)
    scheduler.inbox.extend(reqs)
    for _ in scheduler.event_loop_overlap():
        pass
    dev.synchronize()
    for launch in launches:
        watched.steps.extend(launch.steps(reqs))
    return watched


@dataclass(frozen=True)
class Launch:
    """A decode step of a batch, by name: what it left of each request, and the caches behind it."""

    mode: SamplingMode
    rows: dict[str, Tensor]
    caches: dict[str, Tensor]

    def steps(self, reqs: Sequence[Req]) -> Iterator[Step]:
        """The same for each request; a step behind the end of a text is left out: it is redundant."""
        rows, caches = ({name: x.cpu() for name, x in seen.items()} for seen in (self.rows, self.caches))
        for at, row in enumerate(rows["req_pool_indices"].tolist()):
            seen = {name: x[at] for name, x in rows.items()} | caches
            step = Step(reqs[row - 1], int(seen["seq_lens"]), int(seen["new_seq_lens"]), self.mode, seen)
            if step.new_seq_len < len(step.req.prompt_ids) + len(step.req.output_ids):
                yield step


def _watch(worker: Any, launches: list[Launch]) -> None:
    forward_decode = worker.forward_decode

    def watched(batch: ForwardBatch, on_publish: OnPublish) -> ForwardResult:
        assert batch.relay is not None
        rows = {f"relayed_{name}": x.clone() for name, x in batch.relay.extras.items()}
        result: ForwardResult = forward_decode(batch, on_publish)
        for runner in worker.runners():
            left = runner.outputs_of(runner.bucket(batch.batch_size), batch.mode)
            rows |= {name: x[: batch.batch_size].clone() for name, x in left.items()}
            # The snapshot, not req_to_token: schedule may write that one by now.
            rows["page_table"] = runner.inputs.page_table[: batch.batch_size].clone()
        rows |= {"req_pool_indices": batch.req_pool_indices.clone(), "seq_lens": batch.seq_lens.clone()}
        caches = {}
        for name, pool in (("draft", worker.draft_pool), ("target", worker.resources.kv_pool)):
            for layer, (k, v) in enumerate(zip(pool.k, pool.v, strict=True)):
                caches |= {f"{name}_k_{layer}": k.clone(), f"{name}_v_{layer}": v.clone()}
        launches.append(Launch(batch.mode, rows, caches))
        return result

    worker.forward_decode = watched


def draft_of(kind: str, target: Qwen3, knowing: bool) -> Any:
    """The tiny draft; or one that does not know the target and lives on its attention, so that each entry counts."""
    draft: Any = tiny_draft(kind, target)
    if not knowing:
        draft.guesses.zero_()
        draft.midlayer.self_attn.o_proj.weight.mul_(ATTENTIVE)
        draft.midlayer.self_attn.q_norm.weight.mul_(ATTENTIVE)
    return draft


@cache
@torch.no_grad()
def on_cpu(kind: str, knowing: bool = True) -> tuple[Qwen3, Any]:
    """The same models, for the oracle."""
    target = tiny_target("cpu")
    return target, draft_of(kind, target, knowing)


@torch.no_grad()
def features_of(target: Qwen3, draft: Draft, text: Sequence[int], room: int = 0) -> tuple[Tensor, Tensor]:
    """Tokens ``[1, S]`` with room behind them, and the target's features ``[1, S, n * d]``."""
    ids = torch.tensor([[*text, *[0] * room]])
    _, features = target(ids, torch.arange(ids.shape[1])[None], DenseAttention(), draft.config.feature_layers)
    assert features is not None
    return ids, features


def chooser(step: Step) -> Choose:
    """Chooses as the step's request asks for it."""
    params = step.req.params
    tensors = SamplingTensors(
        temperature=torch.tensor([params.temperature]),
        top_k=torch.tensor([params.top_k], dtype=torch.int32),
        top_p=torch.tensor([params.top_p]),
        seed=torch.tensor([params.seed]),
    )
    return lambda logits, places: draw(without_mask(logits), tensors, step.mode, places, Purpose.DRAFT)


def entries(cache: DenseCache, layer: int) -> tuple[Tensor, Tensor]:
    """K and V of a layer, ``[t, kv_heads, head_dim]`` each."""
    nothing = torch.empty(1, 0, 1, 16)
    k, v = cache.append(layer, nothing, nothing)
    return k[0], v[0]


def without_mask(logits: Tensor) -> Tensor:
    """The mask stands for no text."""
    return logits.index_fill(-1, torch.tensor([VOCAB_SIZE - 1]), float("-inf"))
