"""The rotary table: cosines and sines of every position, in fp32 whatever the model is cast to."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def rotary_table(head_dim: int, theta: float, positions: int) -> Tensor:
    """Cosines and sines of the angles by which RoPE turns each pair of a head, always made on the CPU.

    Devices round cosines differently; a table from one of them is the same on all.

    Args:
        head_dim: width of a head; pair ``i`` is elements ``i`` and ``i + head_dim/2``.
        theta: base of the angles.
        positions: how many positions, from 0.

    Returns:
        ``[positions, head_dim]`` fp32: the cosines of the ``head_dim/2`` pairs, then their sines.
    """
    exponents = torch.arange(0, head_dim, 2, dtype=torch.int64, device="cpu").float() / head_dim
    angles = torch.arange(positions, dtype=torch.float32, device="cpu")[:, None] * (1.0 / theta**exponents)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


class RotaryTable(nn.Module):
    """Holds ``cos_sin`` ``[positions, head_dim]`` and keeps it fp32 when the model around it is cast or moved.

    A bf16 cosine of position 2,000 is a wrong angle, so ``module.to(torch.bfloat16)`` must not reach it; and a model
    that is made on the meta device has no angles to move. The table is therefore made anew where the model goes.
    """

    cos_sin: Tensor

    def __init__(self, head_dim: int, theta: float, positions: int) -> None:
        """Makes the table on the current default device."""
        super().__init__()
        self._shape = (head_dim, theta, positions)
        here = torch.empty(0).device
        self.register_buffer("cos_sin", rotary_table(*self._shape).to(here), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "RotaryTable":
        there = fn(torch.empty(0, device=self.cos_sin.device)).device
        if there != self.cos_sin.device:
            self.cos_sin = rotary_table(*self._shape).to(there)
        return self
