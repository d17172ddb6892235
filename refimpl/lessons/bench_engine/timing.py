"""Times of repeated device work, and what is kept of them: median, p10, p90 and how many there were."""

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Variant = TypeVar("Variant")

LEAST_REPEATS = 30
"""A median of fewer repeats is not printed."""


@dataclass(frozen=True)
class Spread:
    """What is kept of a set of times: the unit is the caller's.

    Args:
        median, p10, p90: of all repeats.
        n: repeats.
    """

    median: float
    p10: float
    p90: float
    n: int

    @classmethod
    def of(cls, times: Sequence[float]) -> "Spread":
        """The spread of these times.

        Raises:
            ValueError: there are none.

        >>> Spread.of([3.0, 1.0, 2.0])
        Spread(median=2.0, p10=1.0, p90=3.0, n=3)
        """
        if not times:
            raise ValueError("spread of no times: measure something first")
        ordered = sorted(times)
        tenth = len(ordered) // 10
        return cls(statistics.median(ordered), ordered[tenth], ordered[-1 - tenth], len(ordered))

    def scaled(self, factor: float) -> "Spread":
        """The same spread in another unit."""
        return Spread(self.median * factor, self.p10 * factor, self.p90 * factor, self.n)


def queued_back_to_back_ms(
    dev: Any, work: Callable[[], object], repeats: int, warm_up: int = 3, stall_us: float = 0.0
) -> list[float]:
    """Duration of each of several pieces of work queued back to back on the current stream, in milliseconds.

    The host runs ahead: it waits only at the end. Where it is slower than the device, `stall_us` keeps the stream busy
    until the whole queue stands, so that the durations are the device's.

    Args:
        dev: the device's module.
        work: queues one piece on the current stream, and does not block the host.
        repeats: pieces measured.
        warm_up: pieces queued before them.
        stall_us: how long the stream sleeps before the first piece.

    Order:
        The current stream; the host blocks until it has run dry.
    """
    marks = [dev.Event(enable_timing=True) for _ in range(repeats + 1)]
    for _ in range(warm_up):
        work()
    if stall_us > 0:
        dev.sleep_stream(stall_us)
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    marks[-1].synchronize()
    return [float(begin.elapsed_time(end)) for begin, end in itertools.pairwise(marks)]


def interleaved(variants: Mapping[Variant, Callable[[], Sequence[float]]], rounds: int) -> dict[Variant, list[float]]:
    """Every variant in turn, `rounds` times over, so that a device that slows down slows all of them."""
    times: dict[Variant, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, measure in variants.items():
            times[name].extend(measure())
    return times
