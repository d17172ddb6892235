"""A draw is a function of seed, position and purpose, and looks random in each of them."""

from collections.abc import Callable

import pytest
import torch

from refimpl.model.sampling import Purpose, uniform
from tests.oracle.chi_square import chi_square, evenly

COUNT = 1 << 17
BINS = 16
# Fixed draws pass or fail for good; so many tests should have some at 1 in 100, none at 1 in 10,000.
UNLIKELY = 1e-4


def draws(seed: int, purpose: Purpose = Purpose.TARGET, first: int = 0, step: int = 1) -> torch.Tensor:
    positions = first + step * torch.arange(COUNT)
    return uniform(torch.tensor([seed]), positions[None], purpose)[0]


def of_seeds(position: int, purpose: Purpose = Purpose.TARGET) -> torch.Tensor:
    return uniform(torch.arange(COUNT), torch.full((COUNT,), position), purpose)


def hashed_by_hand(seed: int, position: int, purpose: Purpose) -> float:
    """The same hash, in Python's own whole numbers."""

    def signed(x: int) -> int:
        return (x + 2**63) % 2**64 - 2**63

    key = signed(seed * 0x9E3779B97F4A7C15 + int(purpose) + position * 0xD1B54A32D192ED03)
    for _ in range(2):
        key = signed((key ^ (key >> 32)) * 0xD6E8FEB86659FD93)
    return ((key >> 40) & 0xFFFFFF) / 2**24


@pytest.mark.parametrize("purpose", Purpose)
def test_a_draw_is_the_hash_of_its_key(purpose: Purpose) -> None:
    for seed, position in [(0, 0), (1, 0), (0, 1), (2**31 - 1, 12345), (-5, 7), (2**63 - 1, 2**31)]:
        drawn = uniform(torch.tensor([seed]), torch.tensor([position]), purpose)
        assert drawn.item() == hashed_by_hand(seed, position, purpose)


def test_a_draw_depends_on_no_other_row_and_no_earlier_call() -> None:
    seeds, positions = torch.tensor([3, 4, 5]), torch.arange(12).view(3, 2, 2)
    together = uniform(seeds, positions, Purpose.DRAFT)
    assert together.shape == positions.shape
    assert together.dtype == torch.float32
    for row in (2, 0, 1):
        alone = uniform(seeds[row : row + 1], positions[row : row + 1].int(), Purpose.DRAFT)
        assert alone.equal(together[row : row + 1])


def test_draws_reach_from_0_to_below_1() -> None:
    u = torch.cat([draws(seed) for seed in range(4)])
    assert u.min() >= 0
    assert u.max() < 1
    assert u.min() < 1e-4
    assert u.max() > 1 - 1e-4


STREAMS: dict[str, Callable[[], torch.Tensor]] = {
    "positions": lambda: draws(0),
    "positions, far out": lambda: draws(1, first=1 << 20),
    "every 8th position": lambda: draws(2, step=8),
    "every 4096th position": lambda: draws(3, step=4096),
    "seeds": lambda: of_seeds(1),
    "seeds at a later position": lambda: of_seeds(1000),
}
PAIRS: dict[str, Callable[[], tuple[torch.Tensor, torch.Tensor]]] = {
    "a position and the next": lambda: (draws(0)[:-1], draws(0)[1:]),
    "a position and the one after next": lambda: (draws(5)[:-2], draws(5)[2:]),
    "a position and the 16th after it": lambda: (draws(6)[:-16], draws(6)[16:]),
    "two neighbouring seeds": lambda: (draws(10), draws(11)),
    "a seed and its double": lambda: (draws(21), draws(42)),
    "the seeds at two positions": lambda: (of_seeds(8), of_seeds(9)),
    "accept and final": lambda: (draws(7, Purpose.ACCEPT), draws(7, Purpose.FINAL)),
    "draft and accept": lambda: (draws(7, Purpose.DRAFT), draws(7, Purpose.ACCEPT)),
    "target and forced": lambda: (draws(7, Purpose.TARGET), draws(7, Purpose.FORCED)),
    "accept, and final of one step before": lambda: (draws(7, Purpose.ACCEPT)[1:], draws(7, Purpose.FINAL)[:-1]),
}


@pytest.mark.parametrize("name", STREAMS)
def test_draws_are_spread_evenly(name: str) -> None:
    u = STREAMS[name]()
    for bins in (10, 256):
        counts = torch.bincount((u * bins).long(), minlength=bins)
        assert chi_square(counts, torch.full((bins,), 1 / bins)) > UNLIKELY


@pytest.mark.parametrize("name", PAIRS)
def test_two_draws_are_independent(name: str) -> None:
    first, second = ((u * BINS).long() for u in PAIRS[name]())
    assert evenly(first * BINS + second, BINS**2) > UNLIKELY


def test_three_draws_in_a_row_are_independent() -> None:
    u = (draws(9) * 8).long()
    assert evenly(u[:-2] * 64 + u[1:-1] * 8 + u[2:], 512) > UNLIKELY


def test_every_bit_of_a_draw_is_fair() -> None:
    whole = (draws(12) * 2**24).long()
    for bit in range(24):
        assert evenly((whole >> bit) & 1, 2) > UNLIKELY


def test_the_test_of_independence_sees_a_hash_without_mixing() -> None:
    weak = (torch.arange(COUNT) * 0.618034) % 1
    first, second = (weak[:-1] * BINS).long(), (weak[1:] * BINS).long()
    assert evenly(first * BINS + second, BINS**2) < UNLIKELY
