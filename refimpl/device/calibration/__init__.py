"""What a GPU and its host cost, measured call by call, so that `sim` can keep their time.

Every figure is of one thing alone: a call of the host, a kernel, a copy, a region launched back to back. None is
fitted to a loop that it is to predict. `host_costs` measures what calls cost the host, `device_costs` what ops cost the
device, `regions` a whole region, `calibrate` all of it. `values` keeps the figures with where they come from, and
`model` says which figure becomes which field of the simulated device's `CostModel`. `h200.json` is the calibration of
one NVIDIA H200 and its host.
"""

from refimpl.device.calibration.values import Calibration, Region, Sample, load

__all__ = ["Calibration", "Region", "Sample", "load"]
