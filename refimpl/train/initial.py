"""Weights before training."""

import math

import torch
from torch import nn

STD = 0.02
_INTO_THE_STREAM = ("o_proj", "down_proj")


def initialize(module: nn.Module, layers: int, seed: int) -> None:
    """Draw every trainable matrix from N(0, 0.02), what adds to the residual stream smaller by the root of its depth.

    Args:
        module: a target, or a draft whose frozen target is left alone.
        layers: how many layers add to one residual stream.
        seed: the same seed gives the same weights on every machine: they are drawn on the CPU.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                continue
            if parameter.dim() == 1:
                parameter.fill_(1.0)
                continue
            std = STD / math.sqrt(2 * layers) if any(part in name for part in _INTO_THE_STREAM) else STD
            parameter.copy_(torch.empty(parameter.shape).normal_(0.0, std, generator=generator))
