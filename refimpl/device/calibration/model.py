"""Which measured figure becomes which field of a cost model."""

from __future__ import annotations

import re
import statistics
from typing import Any

from refimpl.device.calibration.values import DIFFERENCES, Calibration
from refimpl.program.errors import UserError

MEASURED = (
    "clock_us",
    "region_us",
    "view_us",
    "stream_us",
    "record_us",
    "wait_us",
    "synchronize_us",
    "query_us",
    "kernel_us",
    "h2d_us",
    "d2h_us",
    "h2d_bytes_per_us",
    "d2h_bytes_per_us",
    "staging_bytes_per_us",
    "device_bytes_per_us",
)
_GRAPH = re.compile(r"graph_(\d+)_host_us")


def fields_of(calibration: Calibration) -> dict[str, Any]:
    """The fields of a `CostModel`, from medians.

    Raises:
        UserError: The calibration lacks a figure.
    """
    try:
        medians = {name: sample.median for name, sample in calibration.samples.items()}
        base, node = _line(medians)
        operators = {name: sample.median for name, sample in calibration.operators.items()}
        if not operators:
            raise KeyError("operators")
        return {
            **{name: medians[name] for name in MEASURED},
            # A difference of two measurements that is below zero is nought and noise.
            **{name: max(0.0, medians[name]) for name in DIFFERENCES},
            "event_us": max(0.0, medians["first_record_us"] - medians["record_us"]),
            "graph_launch_us": base,
            "graph_node_us": node,
            "flops_per_us": medians["bfloat16_flops_per_us"],
            "launch_us": statistics.median(operators.values()),
            "operators": operators,
        }
    except KeyError as error:
        raise UserError(f"the calibration of {calibration.origin['device']} lacks {error}: measure it again") from error


def _line(medians: dict[str, float]) -> tuple[float, float]:
    """Host time of a graph's launch: a base, and what each node adds."""
    launches = sorted((int(found[1]), us) for name, us in medians.items() if (found := _GRAPH.fullmatch(name)))
    if len(launches) < 2:
        raise KeyError("graph_N_host_us")
    (few, small), (many, large) = launches[0], launches[-1]
    node = max(0.0, (large - small) / (many - few))
    return max(0.0, small - few * node), node
