"""Two clocks: the host's around one call, and the device's around work that was queued before it began."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

Call = Callable[[], object]
SPINS_US = (200.0, 1000.0, 4000.0, 8000.0)
RECURRENCES = 3


def host_us(dev: Any, call: Call) -> float:
    """Host time of one call, and of the Python around it."""
    begin = dev.host_clock_us()
    call()
    return float(dev.host_clock_us() - begin)


def in_rotation(dev: Any, calls: Mapping[str, Call], rounds: int) -> dict[str, list[float]]:
    """Host time of each call as a program makes it: after milliseconds of other work, among other calls.

    A call made a thousand times in a row finds its code and its data in the nearest cache, and costs a fraction of what
    it costs a program. So each round is like a step of one: the host works for a while, then makes every call a few
    times, in an order drawn anew.

    Args:
        dev: The device's module.
        calls: What to time; on an idle device none of them may block.
        rounds: How often.
    """
    random = Random(0)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for n in range(rounds):
        order = list(calls) * RECURRENCES
        random.shuffle(order)
        dev.synchronize()
        dev.host_work(SPINS_US[n % len(SPINS_US)])
        for name in order:
            times[name].append(host_us(dev, calls[name]))
    dev.synchronize()
    return times


def device_us(dev: Any, issue: Call, hold_us: float) -> float:
    """Device time of what `issue` queues on the current stream.

    The stream is held for `hold_us` first, so that all of it is queued when the first of it runs, and the host's pace
    does not show.

    Raises:
        RuntimeError: The host was slower than that.
    """
    begin, end = dev.Event(enable_timing=True), dev.Event(enable_timing=True)
    dev.sleep_stream(hold_us)
    begin.record()
    issue()
    if begin.query():
        raise RuntimeError(f"calibrate: the host took over {hold_us:.0f} us to queue a measurement: run it again")
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1000


def device_times_us(dev: Any, issue: Call, hold_us: float, n: int) -> list[float]:
    """`device_us` a number of times; the first call of all, which may load a library, is left out."""
    issue()
    dev.synchronize()
    return [device_us(dev, issue, hold_us) for _ in range(n + 1)][1:]
