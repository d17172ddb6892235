"""Predicted against measured: the overlapped loop in virtual time, with a GPU's calibration, beside its run there.

The calibration holds figures of single calls and of the captured step alone, so what the loop takes is a prediction.
The host's time between calls, in the interpreter, is not modelled; it is part of the error. So is the host's own speed:
where others share its cores, the same calls take up to three times as long from one second to the next. That is why the
loop is measured in the same sitting as the calibration, and why ``unsteadiness`` says whether the host kept its speed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from refimpl import device as devices
from refimpl.device.calibration import Calibration
from refimpl.device.calibration.clocks import Call
from refimpl.lessons.captured_step import NANO, CapturedStep, shape_for
from refimpl.lessons.measure_overlap import Row, measure, rows_json
from refimpl.lessons.overlap import OverlapLoop

REGION = "forward"
MEASURED = "overlap_loop"
"""The result that a prediction is compared with, unless another is named; ``rows`` are those of ``measure``."""
LOOP_ROUNDS = 8
SHARE, LEAST_US = 0.05, 20.0
"""How far a prediction may be from the measurement: this share of it, or these microseconds if they are more."""


@dataclass(frozen=True)
class Comparison:
    """One figure of one variant at one amount of host work, in milliseconds.

    Args:
        variant: the fence, or the control.
        host_ms: host work per step.
        figure: ``step``, one iteration; ``blocked``, the host's time in blocking calls, before and after the launch.
        predicted_ms, measured_ms: on the simulated device; on the GPU.
        error_us: predicted less measured.
        error_share: the same over what was measured.
        allowed_us: how much it may be.
        within: whether it is no more than that.
    """

    variant: str
    host_ms: float
    figure: str
    predicted_ms: float
    measured_ms: float
    error_us: float
    error_share: float
    allowed_us: float
    within: bool


def captured_step() -> CapturedStep:
    """The loop's captured step, on the GPU present."""
    return CapturedStep("cuda", shape_for("cuda"))


def regions(step: CapturedStep) -> dict[str, tuple[str, Call]]:
    """What `calibrate` measures for this prediction: the step alone."""
    shape = step.shape
    what = f"captured decode step, {shape.layers} layers, hidden {shape.hidden}, batch {shape.batch}, bfloat16"
    return {REGION: (what, step.replay)}


def measured_loop(step: CapturedStep) -> list[dict[str, Any]]:
    """The loop with this step, measured on the GPU present as the chapter does."""
    return rows_json(measure(OverlapLoop("cuda", step), rounds=LOOP_ROUNDS))


def unsteadiness(measured: Sequence[Mapping[str, Any]]) -> float:
    """By how much the host's speed changed while the loop was measured: its longest time in calls per step over its
    shortest, of all rows. Their calls are nearly the same, so on a steady host that is not much over one."""
    calls_ms = [row["host_busy_ms"] - row["host_ms"] for row in measured]
    return float(max(calls_ms) / min(calls_ms))


def largest_step_share(comparisons: Sequence[Comparison]) -> float:
    """By which share of what was measured the worst step time is off."""
    return max(abs(c.error_share) for c in comparisons if c.figure == "step")


def largest_blocked_us(comparisons: Sequence[Comparison]) -> float:
    """By how many microseconds the worst blocked time is off; a share says little where nobody was blocked."""
    return max(abs(c.error_us) for c in comparisons if c.figure == "blocked")


def predict(calibration: Calibration, host_ms: Sequence[float]) -> list[Row]:
    """The chapter's measurement on the simulated device, which keeps the time of this calibration.

    Args:
        calibration: of a GPU and its host; it has the region ``forward``.
        host_ms: amounts of host work per step.
    """
    dev = devices.get("sim")
    costs = dev.CostModel.from_calibration(calibration)
    step = CapturedStep("sim", replace(NANO, sim_us=calibration.region(REGION).device.median))
    with dev.schedule(dev.Timed(costs=costs)):
        return measure(OverlapLoop("sim", step), host_ms, rounds=1)


def compare(predicted: Sequence[Row], measured: Sequence[Mapping[str, Any]]) -> list[Comparison]:
    """Each predicted row beside the measured one of its variant and host work.

    Args:
        predicted: as ``predict`` gives them.
        measured: rows as ``rows_json`` gives them.
    """
    found = {(row["variant"], row["host_ms"]): row for row in measured}
    comparisons = []
    for row in predicted:
        beside = found[row.variant, row.host_ms]
        pairs = {"step": (row.step_ms, beside["step_ms"]), "blocked": (_blocked(asdict(row)), _blocked(beside))}
        comparisons += [_compared(row, figure, *pair) for figure, pair in pairs.items()]
    return comparisons


def against(calibration: Calibration, measured: Sequence[Mapping[str, Any]]) -> list[Comparison]:
    """The prediction for every row that was measured, beside it."""
    return compare(predict(calibration, sorted({row["host_ms"] for row in measured})), measured)


def _compared(row: Row, figure: str, predicted_ms: float, measured_ms: float) -> Comparison:
    error_us, allowed_us = 1000 * (predicted_ms - measured_ms), max(SHARE * 1000 * measured_ms, LEAST_US)
    return Comparison(
        variant=row.variant,
        host_ms=row.host_ms,
        figure=figure,
        predicted_ms=round(predicted_ms, 4),
        measured_ms=round(measured_ms, 4),
        error_us=round(error_us, 1),
        error_share=round(error_us / 1000 / measured_ms, 4),
        allowed_us=round(allowed_us, 1),
        within=abs(error_us) <= allowed_us,
    )


def _blocked(row: Mapping[str, Any]) -> float:
    return float(row["blocked_before_ms"] + row["blocked_after_ms"])
