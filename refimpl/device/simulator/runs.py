"""Runs of schedules: what each begins with, and how what was around it comes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.ops import Queue
from refimpl.device.simulator.schedules.decisions import Decisions
from refimpl.device.simulator.schedules.run import Run
from refimpl.device.simulator.schedules.runner import Schedule


@contextmanager
def under(schedule: Schedule) -> Iterator[Run]:
    """One run of `schedule` from time zero, on a device that is idle before and after; after an error what is still
    queued is dropped.

    Raises:
        RuntimeError: It is left while a run that was begun inside it is open.
    """
    DEVICE.synchronize()
    run = _begin(schedule)
    try:
        yield run
        if run is not next(reversed(DEVICE.runs), None):
            raise RuntimeError(
                "sim: a schedule is left while one that was entered after it is open, or after one around it: "
                "leave last what was entered first"
            )
        DEVICE.capture = None
        DEVICE.synchronize_with(run.decisions.pending())
        run.runner.close()
    except BaseException:
        run.abandon()
        raise
    finally:
        _end(run)


def _begin(schedule: Schedule) -> Run:
    """A new run inside the present one, with all that it finds as every run finds it."""
    run, restore = Run(schedule, Decisions()), ExitStack()
    lanes = {queue: queue.lane for queue in DEVICE.queues.values()}
    restore.callback(_resume, DEVICE.run, DEVICE.host_us, lanes)
    for fresh in (DEVICE.memory.fresh_cache, DEVICE.pinned.fresh_cache, DEVICE.streams.kept, _numbers_afresh):
        restore.enter_context(fresh())
    DEVICE.runs[run] = restore
    DEVICE.adopt(run)
    DEVICE.host_us = 0.0
    return run


def _end(run: Run) -> None:
    """Goes back to before a run, out of those that were begun inside it too."""
    while run in DEVICE.runs:
        DEVICE.capture = None
        inner, restore = DEVICE.runs.popitem()
        inner.abandon()
        restore.close()


def _resume(outer: Run, outer_us: float, lanes: dict[Queue, int]) -> None:
    DEVICE.adopt(outer)
    DEVICE.host_us = outer_us
    for queue in DEVICE.queues.values():
        queue.lane = lanes.get(queue, 0)


@contextmanager
def _numbers_afresh() -> Iterator[None]:
    """Inside, the default generator begins as it was last seeded."""
    outer = DEVICE.generator.get_state()
    DEVICE.generator.manual_seed(DEVICE.generator.initial_seed())
    try:
        yield
    finally:
        DEVICE.generator.set_state(outer)
