"""``profiled``: the engine as of a moment of the history, under torch's profiler, in a file that every viewer reads."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from refimpl import device as devices
from refimpl.engine.errors import EngineError
from refimpl.engine.scheduler import Scheduler
from refimpl.fences import Preset
from refimpl.lessons.bench_engine.drive import run_to_end
from refimpl.lessons.bench_engine.workload import Workload
from refimpl.lessons.history_timing.cases import Case
from refimpl.lessons.history_timing.engines import Engines, load, loop_of
from refimpl.lessons.history_timing.measure import new_tokens
from refimpl.lessons.timelines.naming import LANES, regions
from refimpl.program.errors import UserError

DRAFTS = ("eagle", "dflash")
PROMPT_TOKENS = 16
WARM_UPS = 2
"""Short runs that are thrown away."""
SUFFIXES = (".json", ".json.gz")
TICK_BYTES = 4
"""A fill of so many bytes marks a stream: the profiler gives numbers, and the engine's lanes have names."""


@dataclass(frozen=True)
class Length:
    """How much is profiled.

    Args:
        batch: requests that decode together.
        steps: decode steps of each.

    Raises:
        UserError: one of them is below 1.
    """

    batch: int = 16
    steps: int = 37

    def __post_init__(self) -> None:
        for name in ("batch", "steps"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name} {getattr(self, name)}: give a whole number from 1")


def profiled(preset: Preset, models: str, length: Length, out: Path) -> Path:
    """Decodes a fixed workload under the profiler; the prefill and the last, redundant forward are in it.

    Args:
        preset: whose fences the engine has.
        models: ``"small"`` or ``"8b"``.
        length: of the run.
        out: a ``.json`` or ``.json.gz`` file, written in one step.

    Returns:
        The file's path.

    Raises:
        UserError: a suffix that is no trace's, a preset whose worker drafts nothing, or no GPU.

    Order:
        The host blocks until the device is idle, before the profile and behind it. A host that is profiled is slower.
    """
    if not out.name.endswith(SUFFIXES):
        raise UserError(f"{out}: name a {' or '.join(SUFFIXES)} file")
    if preset.worker not in DRAFTS:
        raise UserError(f"{preset.name} runs {preset.worker}: only {' and '.join(DRAFTS)} are profiled")
    if devices.best() != "cuda":
        raise UserError("a profile needs a GPU; `python -m refimpl run` shows the simulated device's account")
    case = Case(preset.name, preset.worker)
    tokens = new_tokens(length.steps, loop_of(case))
    engines = Engines(load(models, "cuda", (preset.worker,)), (length.batch,), PROMPT_TOKENS + tokens)
    try:
        scheduler = _scheduler(engines, case)
        for _ in range(WARM_UPS):
            _run(engines, case, length.batch, steps=1)
        return _written(engines, case, scheduler, length, out)
    finally:
        engines.close()


def _scheduler(engines: Engines, case: Case) -> Scheduler:
    try:
        return engines.scheduler(case)
    except EngineError as error:
        raise UserError(f"{error}: take fewer --steps, or a smaller --batch") from error


def _run(engines: Engines, case: Case, batch: int, steps: int) -> None:
    loop = loop_of(case)
    work = Workload(batch, PROMPT_TOKENS, new_tokens(steps, loop))
    run_to_end(engines.scheduler(case), engines.subject.requests(work), loop)


def _written(engines: Engines, case: Case, scheduler: Scheduler, length: Length, out: Path) -> Path:
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    config = _ExperimentalConfig(enable_cuda_sync_events=True)
    dev = devices.get("cuda")
    dev.synchronize()
    with ExitStack() as stack:
        profiler = stack.enter_context(profile(activities=activities, experimental_config=config, acc_events=True))
        stack.enter_context(regions(scheduler))
        _mark_lanes(scheduler)
        _run(engines, case, length.batch, length.steps)
        dev.synchronize()
    with TemporaryDirectory(dir=out.parent) as folder:
        draft = Path(folder) / out.name
        profiler.export_chrome_trace(str(draft))
        os.replace(draft, out)
    return out


def _mark_lanes(scheduler: Scheduler) -> None:
    """One small fill under each lane's annotation."""
    import torch
    from torch.profiler import record_function

    dev = devices.get("cuda")
    for attribute, stream in vars(scheduler.streams).items():
        if stream is not None:
            with record_function(f"lane:{LANES.get(attribute, attribute)}"), dev.stream(stream):
                torch.ones(TICK_BYTES, dtype=torch.uint8, device="cuda")
    dev.synchronize()
