"""What is run: the engine of a preset, with models and sizes; and its control, which has every fence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from refimpl import device as devices
from refimpl.engine.build import build_scheduler
from refimpl.engine.config import EngineConfig
from refimpl.engine.scheduler import Scheduler
from refimpl.fences import Fences, Load, Preset
from refimpl.lessons.history.loads import SIZES, Size
from refimpl.lessons.lossless.models import tiny_draft, tiny_target
from refimpl.lessons.lossless.setups import TINY_MODELS, WORKERS
from refimpl.model.qwen3 import Qwen3
from refimpl.model.registry import load_draft, load_target
from refimpl.model.weights_io import Draft
from refimpl.program.errors import UserError

MODELS = (TINY_MODELS, "nano", "small")


def check_models(models: str) -> None:
    """Refuses models that do not exist.

    Raises:
        UserError: the sentence names those that do.
    """
    if models not in MODELS:
        raise UserError(f"unknown models {models!r}: use one of {', '.join(MODELS)}")


@dataclass(frozen=True)
class Subject:
    """An engine to build.

    Args:
        worker: a name of the workers of ``lossless``.
        load: which requests it gets.
        fences: what orders its streams.
        options: more of ``EngineConfig``.
        window: what sliding layers see; None without.
        models: ``"tiny"``, made on the spot, or a trained size.
        device: ``"sim"`` or ``"cuda"``.

    Raises:
        UserError: models that do not exist.
    """

    worker: str
    load: Load
    fences: Fences = field(default_factory=Fences)
    options: Mapping[str, Any] = field(default_factory=dict)
    window: int | None = None
    models: str = TINY_MODELS
    device: str = "sim"

    def __post_init__(self) -> None:
        check_models(self.models)

    @property
    def size(self) -> Size:
        """How many requests, and how long."""
        return SIZES[self.models]

    @property
    def control(self) -> Subject:
        """The same requests with every fence, and without what makes a step other than upstream's of today."""
        return replace(self, fences=Fences(), options={})


def subject_of(preset: Preset, models: str = TINY_MODELS, device: str = "sim") -> Subject:
    """The engine of a preset."""
    return Subject(preset.worker, preset.load, preset.chosen(), preset.engine, preset.window, models, device)


@dataclass(frozen=True)
class Built:
    """An engine, and its models on the CPU for the oracle.

    Args:
        subject: what it is.
        scheduler: idle.
        target, draft: the same numbers on the CPU; the draft of a worker without one is None.
    """

    subject: Subject
    scheduler: Scheduler
    target: Qwen3
    draft: Draft | None


def build(subject: Subject) -> Built:
    """Builds an engine.

    Order:
        The host blocks while graphs are captured.
    """
    devices.get(subject.device)
    target, draft = _models(subject, subject.device)
    return Built(subject, _scheduler(subject, target, draft), *_models(subject, "cpu"))


def rebuilt(built: Built) -> Built:
    """The same engine anew, behind a run that ended in an error: nothing of that run is left in it."""
    return replace(built, scheduler=_scheduler(built.subject, *_models(built.subject, built.subject.device)))


def _scheduler(subject: Subject, target: Qwen3, draft: Draft | None) -> Scheduler:
    size = subject.size
    options: dict[str, Any] = {"max_running_requests": size.rows, "max_context": size.context, **subject.options}
    config = EngineConfig(**options, fences=subject.fences)
    return build_scheduler(target, draft, config)


def _models(subject: Subject, device: str) -> tuple[Qwen3, Draft | None]:
    kind, dtype = WORKERS[subject.worker].draft, torch.float32
    if subject.models == TINY_MODELS:
        tiny = tiny_target(device, dtype, subject.window)
        return tiny, None if kind == "none" else tiny_draft(kind, tiny)
    target = load_target(subject.models, device, dtype, sliding_window=subject.window)
    return target, None if kind == "none" else load_draft(kind, subject.models, target)
