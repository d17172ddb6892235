"""Every test here runs on a fresh, idle simulated device at virtual time zero."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from refimpl import device

if torch.cuda.is_initialized():
    pytest.skip("sim needs a process in which CUDA is not initialised", allow_module_level=True)


@pytest.fixture
def dev() -> Iterator[Any]:
    sim = device.sim()
    with sim.schedule(sim.Timed()), sim.stream(sim.default_stream()):
        torch.manual_seed(0)
        yield sim
