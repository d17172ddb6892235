"""What a region costs, launched alone: so that the simulated device can be told how long it takes."""

from __future__ import annotations

from refimpl.device.calibration.clocks import Call
from refimpl.device.calibration.values import Region, Sample
from refimpl.device.select import get

IN_A_ROW = 4


def measure_region(device: str, what: str, launch: Call, repeats: int = 30) -> Region:
    """Device time of a region, back to back with itself on an otherwise idle device.

    Args:
        device: The device.
        what: One line on what it is: shapes, types.
        launch: Queues it once on the current stream and does not block, as the replay of a captured graph. Its inputs
            hold data like a program's: a device may be quicker with zeros.
        repeats: Measurements.
    Example:
        measured = measure_region("cuda", "my decode step", graph.replay)  # kept with Calibration.save
        with dev.cost("decode step", us=measured.device.median):  # on sim, in another process
            graph.replay()
    """
    dev = get(device)
    begin, end = dev.Event(enable_timing=True), dev.Event(enable_timing=True)
    times = []
    for _ in range(repeats + 1):
        launch()
        begin.record()
        for _ in range(IN_A_ROW):
            launch()
        end.record()
        end.synchronize()
        times.append(float(begin.elapsed_time(end)) * 1000 / IN_A_ROW)
    return Region(what, Sample.of(times[1:], "us"))
