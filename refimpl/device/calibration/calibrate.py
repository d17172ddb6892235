"""All measurements of a calibration."""

from __future__ import annotations

from collections.abc import Mapping

from refimpl.device.calibration.amount import FULL, Amount
from refimpl.device.calibration.clocks import Call
from refimpl.device.calibration.device_costs import device_costs
from refimpl.device.calibration.host_costs import host_costs
from refimpl.device.calibration.regions import measure_region
from refimpl.device.calibration.values import Calibration


def calibrate(
    device: str,
    origin: Mapping[str, str],
    regions: Mapping[str, tuple[str, Call]] | None = None,
    amount: Amount = FULL,
) -> Calibration:
    """Measures a device and its host; about twenty seconds, in which the device should have nothing else to do.

    Args:
        device: `cuda`; `sim` gives the costs that it was told.
        origin: Where the figures come from, as `values.ORIGIN` names it.
        regions: Regions to measure, by name: what each is, and what launches it.
        amount: How much to measure.
    """
    samples, operators = host_costs(device, amount.rounds, amount.graph_nodes)
    return Calibration(
        origin=dict(origin),
        samples=samples | device_costs(device, amount),
        operators=operators,
        regions={
            name: measure_region(device, what, launch, amount.repeats)
            for name, (what, launch) in (regions or {}).items()
        },
    )
