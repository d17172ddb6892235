"""A calibration of a GPU: every figure is of the size that such hardware has, and the model is made of them."""

import pytest
import torch

from refimpl.device.calibration import Calibration
from refimpl.device.calibration.amount import QUICK
from refimpl.device.calibration.calibrate import calibrate
from refimpl.device.calibration.values import ORIGIN
from refimpl.device.simulator.costs import CostModel

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    assert torch.cuda.is_available(), "these tests need a GPU: leave them out with -m 'not gpu'"
    x = torch.randn(1 << 24, device="cuda")
    return calibrate(
        "cuda", dict.fromkeys(ORIGIN, "this test"), {"scale": ("16M floats", lambda: x.mul_(1.0001))}, QUICK
    )


def test_every_figure_is_the_median_of_thirty_or_more_and_lies_within_its_spread(calibration: Calibration) -> None:
    for sample in (*calibration.samples.values(), *calibration.operators.values()):
        assert sample.n >= 30
        assert sample.p10 <= sample.median <= sample.p90


def test_calls_take_microseconds_and_latencies_are_short(calibration: Calibration) -> None:
    model = CostModel.from_calibration(calibration)
    for name in ("launch_us", "view_us", "record_us", "wait_us", "stream_us", "graph_launch_us", "synchronize_us"):
        assert 0.1 < getattr(model, name) < 200, name
    for name in ("kernel_us", "h2d_us", "d2h_us", "start_us"):
        assert 0.5 < getattr(model, name) < 50, name
    assert model.wake_us < 50
    assert model.cross_us < 20


def test_a_region_takes_what_its_bytes_take(calibration: Calibration) -> None:
    moved = 2 * 4 * (1 << 24)
    by_bandwidth = moved / calibration.samples["device_bytes_per_us"].median
    assert 0.3 * by_bandwidth < calibration.region("scale").device.median < 3 * by_bandwidth
