"""Stalls for a device that has no adversary: streams that stand still for a while, so that others overtake them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from refimpl import device as devices
from refimpl.engine.scheduler import Scheduler

Disturb = Callable[[Scheduler, int], Callable[[int], None]]
"""Makes what is called between turns, of a scheduler and a seed."""

_CHANCE = 0.3
_SHORTEST_US, _LONGEST_US = 20.0, 2000.0


def stalls(scheduler: Scheduler, seed: int) -> Callable[[int], None]:
    """What stalls one of the engine's streams, between some of the turns.

    Args:
        scheduler: whose streams.
        seed: of the choice of stream, turn and length.

    Returns:
        To be called between turns; the host does not block.
    """
    random, dev = Random(seed), devices.get(scheduler.device)
    streams = tuple(vars(scheduler.streams).values())

    def between(turn: int) -> None:
        if random.random() < _CHANCE:
            with dev.stream(random.choice(streams)):
                dev.sleep_stream(random.uniform(_SHORTEST_US, _LONGEST_US))

    return between
