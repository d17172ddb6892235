"""Random numbers of the simulated device, with the names of `torch.cuda`: one default generator, of which seeds for ops
are drawn in issue order."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.refused import refuse_index


def manual_seed(seed: int) -> None:
    """Seeds the device's default generator."""
    DEVICE.generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the device's default generator, as `torch.manual_seed` does for every device."""
    manual_seed(seed)


def seed() -> None:
    """Seeds the device's default generator from the machine's entropy: no two runs have the same numbers."""
    DEVICE.generator.seed()


def seed_all() -> None:
    """Seeds the device's default generator from the machine's entropy, as `torch.seed` does for every device."""
    seed()


def initial_seed() -> int:
    """The seed of the device's default generator."""
    return DEVICE.generator.initial_seed()


def get_rng_state(device: object = None) -> torch.Tensor:
    """The state of the device's default generator, on the CPU; `torch.random.fork_rng(device_type="sim")` keeps it."""
    refuse_index(device)
    return DEVICE.generator.get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """The state of each device's default generator: there is one."""
    return [get_rng_state()]


def set_rng_state(new_state: torch.Tensor, device: object = None) -> None:
    """Gives the device's default generator a state that `get_rng_state` returned. The host does not block."""
    refuse_index(device)
    DEVICE.generator.set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Gives each device's default generator a state: there is one."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
