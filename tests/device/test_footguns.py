"""Each footgun goes off in its racy form and never in its fixed one, on both devices and by the same text."""

import pytest
import torch

from refimpl import device
from refimpl.device.simulator.install import installed
from refimpl.lessons import measure_footguns
from refimpl.lessons.footguns import FOOTGUNS

SEEDS = 20
MORE_SEEDS = 400
"""A race that few orders show needs more draws; a fixed form has to hold in all of them."""


@pytest.mark.parametrize("name", FOOTGUNS)
def test_on_sim_some_order_breaks_the_racy_form_and_none_the_fixed_one(name: str) -> None:
    (row,) = measure_footguns.measure("sim", SEEDS, [name])
    if not row.racy_wrong:
        (row,) = measure_footguns.measure("sim", MORE_SEEDS, [name])
    assert row.racy_wrong > 0
    assert row.fixed_wrong == 0


@pytest.mark.parametrize("name", FOOTGUNS)
def test_the_order_that_broke_it_replays(name: str) -> None:
    (row,) = measure_footguns.measure("sim", MORE_SEEDS, [name])
    dev = device.get("sim")
    with dev.schedule(dev.Replay(row.schedule)):
        assert FOOTGUNS[name].run("sim", fenced=False) == row.got != row.right


@pytest.mark.parametrize("name", FOOTGUNS)
def test_in_virtual_time_the_stalled_stream_is_late_and_the_fence_waits_for_it(name: str) -> None:
    footgun = FOOTGUNS[name]
    assert footgun.run("sim", fenced=False) != footgun.right
    assert footgun.run("sim", fenced=True) == footgun.right


@pytest.mark.gpu
@pytest.mark.parametrize("name", FOOTGUNS)
def test_on_a_gpu_the_stalled_stream_breaks_the_racy_form_and_never_the_fixed_one(name: str) -> None:
    if installed() or not torch.cuda.is_available():
        pytest.fail("this needs a GPU, and a process without sim: run pytest -m gpu")
    (row,) = measure_footguns.measure("cuda", 10, [name])
    assert (row.racy_wrong, row.fixed_wrong) == (10, 0)
