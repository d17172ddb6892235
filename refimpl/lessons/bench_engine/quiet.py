"""Runs a loop where and while nobody else keeps the host busy.

A lent machine shares its cores with others: the same calls take twice as long on one core as on another, and in one
second as in the next. What is to be known is the engine and not its neighbours, so a run is given the core on which a
fixed set of calls is done soonest, and made again if these are slow beside it. Runs are chosen by those calls, never by
what came out of the runs themselves.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

Outcome = TypeVar("Outcome")
MOST_CORES = 8
"""Tried of those that the process may use, evenly spread."""
NEAR = 1.15
"""Times the fastest reference: as quiet as it gets."""
PATIENCE_S = 1.5
"""Time for runs that are made again; whoever takes longer is taken as it is."""


@dataclass(frozen=True)
class Run(Generic[Outcome]):
    """One run.

    Args:
        outcome: of it.
        reference_us: the slower of the host's references before and after it.
        again: runs that were more disturbed, and are left out.
    """

    outcome: Outcome
    reference_us: float
    again: int


class QuietHost:
    """Runs things while the host is quiet.

    Args:
        reference_us: does some fixed work, and says how long it took.
        binds: False where the host's time is virtual: any core and any moment are as good as another.
    """

    def __init__(self, reference_us: Callable[[], float], binds: bool) -> None:
        self._reference_us, self._binds = reference_us, binds
        self._fastest_us = float("inf")

    def run(self, once: Callable[[], Outcome]) -> Run[Outcome]:
        """Runs it, and again while it was disturbed and there is time; the least disturbed run counts."""
        begin, runs = time.monotonic(), list[tuple[float, Outcome]]()
        while True:
            with self._on_the_quietest_core() as before:
                outcome = once()
                runs.append((max(before, self._timed()), outcome))
            slower, least = min(runs, key=lambda run: run[0])
            spent = time.monotonic() - begin
            if not self._binds or slower <= NEAR * self._fastest_us or spent + spent / len(runs) > PATIENCE_S:
                return Run(least, slower, len(runs) - 1)

    def _timed(self) -> float:
        us = self._reference_us()
        self._fastest_us = min(self._fastest_us, us)
        return us

    @contextmanager
    def _on_the_quietest_core(self) -> Iterator[float]:
        """Inside, the calling thread stays on one core; yields the reference there.

        Threads that are started inside stay there for good: run it once before.
        """
        if not self._binds or not hasattr(os, "sched_setaffinity"):
            yield self._timed()
            return
        allowed = os.sched_getaffinity(0)
        times = dict[int, float]()
        try:
            for core in sorted(allowed)[:: -(-len(allowed) // MOST_CORES)]:
                os.sched_setaffinity(0, {core})
                times[core] = self._timed()
            quietest = min(times, key=times.__getitem__)
            os.sched_setaffinity(0, {quietest})
            yield times[quietest]
        finally:
            os.sched_setaffinity(0, allowed)
