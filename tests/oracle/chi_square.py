"""How likely counts are, if a distribution is what it is said to be."""

import torch


def chi_square(counts: torch.Tensor, expected: torch.Tensor) -> float:
    """The probability that counts are at least this far from an expected distribution; cells of no probability are
    left out, and must have no counts."""
    expected = expected.double().flatten()
    counts = counts.double().flatten()
    possible = expected > 0
    if counts[~possible].sum() > 0:
        return 0.0
    wanted = expected[possible] / expected[possible].sum() * counts.sum()
    distance = ((counts[possible] - wanted) ** 2 / wanted).sum()
    return float(torch.special.gammaincc((possible.sum().double() - 1) / 2, distance / 2))


def evenly(cells: torch.Tensor, size: int) -> float:
    """The same for numbers that should be spread evenly over `size` cells."""
    return chi_square(torch.bincount(cells, minlength=size), torch.ones(size))
