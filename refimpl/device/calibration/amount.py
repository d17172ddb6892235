"""How much a calibration measures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Amount:
    """How often and how large.

    Args:
        rounds: Rounds for the host's figures. Many, because a host that shares its cores changes its speed by a factor
            of two within a second.
        repeats: Measurements of each of the device's figures.
        chain: Small ops in a row, of which each has its share of the time.
        graph_nodes: Sizes of the graphs that are launched.
        elements: Of the tensors that are copied, eight bytes each.
        side: Of the square matrices that are multiplied.
    """

    rounds: int = 2000
    repeats: int = 30
    chain: int = 100
    graph_nodes: tuple[int, ...] = (1, 100, 500)
    elements: int = 1 << 23
    side: int = 4096


FULL, QUICK = Amount(), Amount(rounds=100)
