"""What a step costs under a preset's fences: how long the host stands still, the step itself, and the idle device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean, median

from refimpl import device as devices
from refimpl.engine.request import SamplingParams
from refimpl.lessons.bench_engine.observed import Step, observed
from refimpl.lessons.history.loads import draw
from refimpl.lessons.history.runner import FAULTS
from refimpl.lessons.history.subject import Built
from refimpl.lessons.lossless.load import Arrival
from refimpl.lessons.lossless.play import play_unchecked

HOST_WORK_US = 60.0
"""Host work of a turn besides its calls, which the simulated device does not charge for; a GPU's host does its own."""
WARM_UP, TAKES = 1, 3
"""Runs of a GPU before one counts, and that count."""


@dataclass(frozen=True)
class Cost:
    """Medians over the steady decodes of a run without stalls.

    Args:
        steps: how many.
        before_us: host blocked in a step before its forward is launched.
        after_us: host blocked behind the launch: the wait for results, mostly.
        step_us: from the beginning of a step to that of the next.
        gpu_idle: share of the steps in which the forward stream had nothing to run.
    """

    steps: int
    before_us: float
    after_us: float
    step_us: float
    gpu_idle: float


def timed(built: Built) -> Cost | None:
    """Times steady decodes: as many requests as there are rows, as long as the context allows.

    Args:
        built: the engine, idle.

    Returns:
        None where the run ended in a fault before a decode was steady.

    Order:
        The host blocks where the loop does; no profiler and no recorder is attached.
    """
    steps: list[Step] = []
    for take in range(1 if _is_sim(built) else WARM_UP + TAKES):
        try:
            found = _take(built)
        except FAULTS:
            break
        if _is_sim(built) or take >= WARM_UP:
            steps += found
    return _medians(steps) if steps else None


def _take(built: Built) -> list[Step]:
    scheduler, load = built.scheduler, _steady(built)
    with _in_virtual_time(built):
        with observed(scheduler, marks=True, host_work_us=HOST_WORK_US if _is_sim(built) else 0.0) as watch:
            play_unchecked(scheduler, load)
        devices.get(built.subject.device).synchronize()
        return watch.steady(len(load), skip=2)


def _steady(built: Built) -> list[Arrival]:
    """Requests that fill the rows until the context is full, all of one length."""
    subject = built.subject
    size = subject.size
    params = SamplingParams(max_new_tokens=size.context - size.prompt, ignore_eos=True)
    prompts = [arrival.prompt_ids for arrival in draw(subject.load, subject.models, seed=0)[: size.rows]]
    return [Arrival(0, prompt, params) for prompt in prompts]


def _medians(steps: list[Step]) -> Cost:
    idle, whole = [step.idle_us or 0.0 for step in steps], [step.device_us or step.us for step in steps]
    return Cost(
        steps=len(steps),
        before_us=median(step.blocked_before_us for step in steps),
        after_us=median(step.blocked_us - step.blocked_before_us for step in steps),
        step_us=median(step.us for step in steps),
        gpu_idle=fmean(idle) / fmean(whole),
    )


@contextmanager
def _in_virtual_time(built: Built) -> Iterator[None]:
    if not _is_sim(built):
        yield
        return
    dev = devices.sim()
    with dev.schedule(dev.Timed()):
        yield


def _is_sim(built: Built) -> bool:
    return built.subject.device == "sim"
