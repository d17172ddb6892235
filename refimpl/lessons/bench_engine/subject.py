"""One set of weights, and the schedulers and peers that decode with them."""

from collections.abc import Mapping, Sequence
from itertools import cycle, islice

import torch

from refimpl import device as devices
from refimpl.engine.build import build_scheduler
from refimpl.engine.config import EngineConfig
from refimpl.engine.request import Req
from refimpl.engine.scheduler import Scheduler
from refimpl.lessons.bench_engine.drive import requests
from refimpl.lessons.bench_engine.workload import Workload
from refimpl.model.acceptance import ForcedAcceptance
from refimpl.model.qwen3 import Qwen3
from refimpl.model.registry import load_draft, load_target
from refimpl.model.weights_io import Draft

PLAIN = "none"
CONTEXT = 512
"""Tokens of a request at most; what the longest workload needs."""


class Subject:
    """A target, loaded once, with its drafts; schedulers are built when they are first asked for.

    Args:
        name: of the weights, for the rows.
        target: on `cuda` or on `sim`.
        drafts: by kind.
        forced: counts of accept lengths from 1 on, for a target whose weights are random; None: earned.
        texts: prompts to decode from; None: random ones, since what is said does not change what a step costs.
    """

    def __init__(
        self,
        name: str,
        target: Qwen3,
        drafts: Mapping[str, Draft],
        forced: Sequence[int] | None = None,
        texts: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.name, self.target, self.drafts, self.forced, self.texts = name, target, dict(drafts), forced, texts
        self.device = target.device.type
        self._schedulers: dict[tuple[str, int], Scheduler] = {}

    @classmethod
    def load(
        cls,
        name: str,
        device: str,
        kinds: Sequence[str],
        forced: Sequence[int] | None = None,
        texts: Sequence[Sequence[int]] | None = None,
    ) -> "Subject":
        """The weights of this name, in bfloat16 on CUDA and in float32 on `sim`, with drafts of these kinds."""
        devices.get(device)
        dtype = torch.float32 if device == "sim" else torch.bfloat16
        target = load_target(name, device, dtype)
        return cls(name, target, {kind: load_draft(kind, name, target) for kind in kinds}, forced, texts)

    def prompts(self, work: Workload) -> list[list[int]]:
        """Token ids for each request of a workload: its own texts in turn, cut to the length asked for."""
        if self.texts is None:
            return work.prompts(self.target.config.vocab_size)
        return [list(text[: work.prompt_tokens]) for text in islice(cycle(self.texts), work.requests)]

    def requests(self, work: Workload) -> list[Req]:
        """New requests of a workload."""
        return requests(work, self.prompts(work))

    def scheduler(self, draft: str, max_running_requests: int) -> Scheduler:
        """The scheduler with this draft, or with none, for at most so many requests; idle between two runs.

        Order:
            The first call captures graphs and blocks the host.
        """
        key = (draft, max_running_requests)
        if key not in self._schedulers:
            config = EngineConfig(max_running_requests=max_running_requests, max_context=CONTEXT)
            model = None if draft == PLAIN else self.drafts[draft]
            forced = None if model is None or self.forced is None else ForcedAcceptance(self.forced, self.device)
            self._schedulers[key] = build_scheduler(self.target, model, config, forced)
        return self._schedulers[key]

    def head(self) -> torch.Tensor:
        """``[vocab, d]``, the weight that makes logits."""
        tied = self.target.config.tie_word_embeddings
        weight: torch.Tensor = (self.target.embed_tokens if tied else self.target.lm_head).weight
        return weight.detach()

    def close(self) -> None:
        """Gives the schedulers' memory and graphs back."""
        self._schedulers.clear()
        if self.device == "cuda":
            torch.cuda.empty_cache()
