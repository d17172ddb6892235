"""Every test here runs on a fresh, idle simulated device at virtual time zero."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from refimpl import device
from refimpl.device.simulator.machine import DEVICE


@pytest.fixture
def dev() -> Iterator[Any]:
    sim = device.sim()
    sim.synchronize()
    DEVICE.queues = {0: DEVICE.queues[0]}  # no stream was used yet, whatever other tests did: sentences name the first
    with sim.schedule(sim.Timed()), sim.stream(sim.default_stream()):
        torch.manual_seed(0)
        yield sim
