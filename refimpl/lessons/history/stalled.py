"""Stalls for a device that has no adversary: wherever one stream may be overtaken by another, it stands still at times.

Each of the places lies between two marks that some fence of the history counts on: before the snapshot of a graph,
between a ``read_done`` and the replay behind it, before the lengths are published and before the rest is stashed. So an
event that is recorded too early lets others write while what it should cover has not been read yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from random import Random
from typing import Any
from unittest.mock import patch

from refimpl import device as devices
from refimpl.engine.scheduler import Scheduler

CHANCE = 0.1
"""Of a stall at one place; a step passes some eight of them."""
SHORTEST_US, LONGEST_US = 200.0, 2000.0
"""The host prepares a step in less than the longest: it overtakes."""


@contextmanager
def stalled(scheduler: Scheduler, seed: int) -> Iterator[None]:
    """Inside, streams of the engine stand still at places drawn from a seed; the host does not block.

    Args:
        scheduler: whose streams.
        seed: of places and durations.
    """
    random, device = Random(seed), scheduler.device
    # The first of a process blocks the host.
    devices.sleep_stream(device, 1.0)

    def stall() -> None:
        if random.random() < CHANCE:
            devices.sleep_stream(device, random.uniform(SHORTEST_US, LONGEST_US))

    with ExitStack() as stack:
        for owner, name in _places(scheduler):
            stack.enter_context(patch.object(owner, name, _after(stall, getattr(owner, name))))
        yield


def _places(scheduler: Scheduler) -> Iterator[tuple[Any, str]]:
    for runner in scheduler.worker.runners():
        yield runner, "load_batch"
        yield from ((captured.graph, "replay") for captured in runner._captured.values())
    yield scheduler.worker, "forward_extend"
    yield scheduler.lengths, "publish"
    yield scheduler.future_map, "stash"


def _after(stall: Callable[[], None], call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def run(*args: Any, **options: Any) -> Any:
        stall()
        return call(*args, **options)

    return run
