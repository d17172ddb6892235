"""Calibration and prediction: costs are found call by call, and from them alone follows what a loop takes."""

from dataclasses import asdict
from functools import cache
from typing import Any

import pytest

from refimpl.device.calibration import load
from refimpl.device.calibration.amount import Amount
from refimpl.device.calibration.calibrate import calibrate
from refimpl.device.calibration.model import fields_of
from refimpl.device.calibration.values import ORIGIN
from refimpl.lessons import results
from refimpl.lessons.predict_overlap import MEASURED, Comparison, against, compare, predict, unsteadiness

TOLD = {
    "launch_us": 9.0,
    "view_us": 2.0,
    "event_us": 3.0,
    "record_us": 1.5,
    "wait_us": 1.25,
    "synchronize_us": 0.75,
    "query_us": 0.5,
    "stream_us": 2.5,
    "graph_launch_us": 6.0,
    "graph_node_us": 0.25,
    "wake_us": 2.0,
    "region_us": 4.0,
    "kernel_us": 2.25,
    "start_us": 6.5,
    "cross_us": 1.0,
    "h2d_us": 1.5,
    "d2h_us": 1.75,
}
LITTLE = Amount(rounds=2, repeats=2, chain=10, graph_nodes=(1, 20), elements=1 << 12, side=16)


@cache
def comparisons() -> tuple[Comparison, ...]:
    return tuple(against(load("h200"), measured()))


def measured() -> list[dict[str, Any]]:
    return list(results.load(MEASURED).data["rows"])


def test_a_calibration_of_the_simulated_device_gives_back_what_it_was_told(dev: Any) -> None:
    with dev.schedule(dev.Timed(costs=dev.CostModel(**TOLD, operators={"add_": 5.0}))):
        found = fields_of(calibrate("sim", dict.fromkeys(ORIGIN, "this test"), amount=LITTLE))
    # The host sees the start by asking, and asks every half microsecond.
    assert found.pop("start_us") == pytest.approx(6.5, abs=TOLD["query_us"])
    assert {name: found[name] for name in TOLD if name != "start_us"} == pytest.approx(
        {name: us for name, us in TOLD.items() if name != "start_us"}, rel=0.01
    )
    assert found["operators"]["add_"] == 5.0
    assert found["clock_us"] == 0.0


def test_step_time_and_blocked_time_are_predicted_within_the_tolerance() -> None:
    assert [row for row in comparisons() if not row.within] == []


def test_the_loop_was_measured_on_the_calibrated_gpu_while_its_host_kept_its_speed() -> None:
    result, calibration = results.load(MEASURED), load("h200")
    there = tuple(calibration.origin[name] for name in ("device", "driver", "torch"))
    assert (result.device, result.driver, result.torch) == there
    assert unsteadiness(measured()) < 1.5


def test_every_variant_and_amount_of_host_work_of_the_chapter_is_predicted() -> None:
    rows = results.load("verify_done").data["rows"]
    assert {(row["variant"], row["host_ms"]) for row in rows} == {(c.variant, c.host_ms) for c in comparisons()}
    assert len(comparisons()) == 2 * len(rows)


def test_the_committed_prediction_is_what_the_calibration_predicts() -> None:
    assert results.load("prediction").data["rows"] == [asdict(row) for row in comparisons()]


def test_a_prediction_is_compared_with_the_row_of_its_variant_and_host_work() -> None:
    (row, *_) = predict(load("h200"), [1.0])
    measured = {**asdict(row), "step_ms": row.step_ms * 1.2}
    step, blocked = compare([row], [measured, {**measured, "host_ms": 2.0, "step_ms": row.step_ms}])
    assert (step.within, blocked.within, blocked.error_us) == (False, True, 0.0)
    assert step.error_share == pytest.approx(1 / 1.2 - 1, abs=1e-3)
