"""The engines that are tried: every worker with every option that changes who writes what, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from refimpl import device as devices
from refimpl.engine.build import build_scheduler
from refimpl.engine.config import EngineConfig
from refimpl.engine.memory import BLOCKS_AHEAD
from refimpl.engine.scheduler import Scheduler
from refimpl.engine.workers.make import alloc_len_of
from refimpl.lessons.lossless.models import tiny_draft, tiny_target
from refimpl.model.registry import load_draft, load_target
from refimpl.model.sampling import SamplingMode
from refimpl.model.weights_io import Draft
from refimpl.program.errors import UserError

TINY_MODELS = "tiny"
WINDOW = 8
Options = Mapping[str, Any]
"""Of ``EngineConfig``."""


@dataclass(frozen=True)
class WorkerSetup:
    """A worker by name: which draft it runs, and the options that choose it.

    Args:
        draft: ``"none"``, ``"eagle"``, ``"mtp"`` or ``"dflash"``.
        options: of ``EngineConfig``.
    """

    draft: str
    options: Options = field(default_factory=dict)


WORKERS: dict[str, WorkerSetup] = {
    "plain": WorkerSetup("none"),
    "dflash": WorkerSetup("dflash"),
    "eagle": WorkerSetup("eagle"),
    "eagle-tree": WorkerSetup("eagle", {"draft_topk": 2, "draft_tokens": 6}),
    "mtp": WorkerSetup("mtp"),
}


@dataclass(frozen=True)
class Variant:
    """A way to run the loop.

    Args:
        options: of ``EngineConfig``.
        window: what every odd layer sees; None: everything.
        slots_for: cache for so many requests of full length instead of for all, so that some are retracted; None: all.
    """

    options: Options = field(default_factory=dict)
    window: int | None = None
    slots_for: float | None = None


VARIANTS: dict[str, Variant] = {
    "overlap": Variant(),
    "normal": Variant({"overlap": False}),
    "sliding window": Variant(window=WINDOW),
    "plan stream": Variant({"plan_stream": True}),
    "cpu lengths": Variant({"needs_cpu_seq_lens": True}),
    "few slots": Variant(slots_for=1.2),
    "prefills apart": Variant({"disable_consecutive_prefill_overlap": True, "max_prefill_tokens": 16}),
    "all at once": Variant({"plan_stream": True, "needs_cpu_seq_lens": True, "max_prefill_tokens": 16}, WINDOW, 1.2),
}


@dataclass(frozen=True)
class Setup:
    """An engine to build.

    Args:
        worker: a name of :data:`WORKERS`.
        variant: a name of :data:`VARIANTS`.
        models: ``"tiny"``, made here, or a trained size of the registry.
        device: ``"sim"`` or ``"cuda"``.
        dtype: of weights and cache.
        max_running_requests, max_context: of the engine.
        options: more of ``EngineConfig``, such as other fences.

    Raises:
        UserError: an unknown worker or variant.
    """

    worker: str
    variant: str = "overlap"
    models: str = TINY_MODELS
    device: str = "sim"
    dtype: torch.dtype = torch.float32
    max_running_requests: int = 5
    max_context: int = 32
    options: Options = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, known in (("worker", WORKERS), ("variant", VARIANTS)):
            if getattr(self, name) not in known:
                raise UserError(f"unknown {name} {getattr(self, name)!r}: use one of {', '.join(known)}")

    @property
    def window(self) -> int | None:
        """What the target's odd layers see."""
        return VARIANTS[self.variant].window


@dataclass(frozen=True)
class Built:
    """A scheduler, and the target again on the CPU for the oracle."""

    scheduler: Scheduler
    vocabulary: int
    setup: Setup


def build(setup: Setup, modes: Iterable[SamplingMode] = (SamplingMode.GREEDY,)) -> Built:
    """Builds the engine of a setup.

    Args:
        setup: what to build.
        modes: of sampling, whose graphs are captured now; any other at its first use.

    Order:
        The host blocks while graphs are captured.
    """
    worker, variant = WORKERS[setup.worker], VARIANTS[setup.variant]
    devices.get(setup.device)
    target, draft = _models(setup, worker.draft)
    sizes = {"max_running_requests": setup.max_running_requests, "max_context": setup.max_context}
    config = EngineConfig(**{**sizes, **worker.options, **variant.options, **setup.options})
    if variant.slots_for is not None and config.num_slots is None:
        longest = setup.max_context + BLOCKS_AHEAD * alloc_len_of(draft, config)
        config = replace(config, num_slots=int(variant.slots_for * longest))
    scheduler = build_scheduler(target, draft, config)
    for mode in modes:
        scheduler.capture_blocking(mode)
    return Built(scheduler, target.config.vocab_size, setup)


def oracle_target(setup: Setup, device: str = "cpu") -> Any:
    """The target of a setup once more, on the oracle's device."""
    if setup.models == TINY_MODELS:
        return tiny_target(device, setup.dtype, setup.window)
    return load_target(setup.models, device, setup.dtype, sliding_window=setup.window)


def _models(setup: Setup, kind: str) -> tuple[Any, Draft | None]:
    if setup.models == TINY_MODELS:
        tiny = tiny_target(setup.device, setup.dtype, setup.window)
        return tiny, None if kind == "none" else tiny_draft(kind, tiny)
    target = load_target(setup.models, setup.device, setup.dtype, sliding_window=setup.window)
    return target, None if kind == "none" else load_draft(kind, setup.models, target)
