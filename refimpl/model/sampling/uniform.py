"""Random numbers without a generator: a draw is a hash of who draws it, for which token, and what for.

A generator is a counter that every draw moves on, so the order of the draws decides their values: another schedule,
another batch or a retraction would change the text. A hash has no order.
"""

from __future__ import annotations

from enum import IntEnum

import torch

# Odd 64-bit constants with well-mixed bits, as signed numbers: the strides keep neighbouring keys apart, the
# multiplier spreads a difference in low bits over the high ones.
_SEED_STRIDE = 0x9E3779B97F4A7C15 - 2**64
_POSITION_STRIDE = 0xD1B54A32D192ED03 - 2**64
_MULTIPLIER = 0xD6E8FEB86659FD93 - 2**64

# What a float32 in [0, 1) holds without rounding up to 1.
_MANTISSA_BITS = 24


class Purpose(IntEnum):
    """What a draw decides. Two purposes share no draw, so one token's decisions are independent.

    ``TARGET``: the target's own token at a position. ``DRAFT``: a drafted token. ``ACCEPT``: whether that draft is
    accepted. ``FINAL``: the token behind the accepted drafts. ``FORCED``: an accept length that is made up for timing.
    The values are offsets of the key, chosen far apart.
    """

    TARGET = 0xBF58476D1CE4E5B9 - 2**64
    DRAFT = 0x94D049BB133111EB - 2**64
    ACCEPT = 0xFF51AFD7ED558CCD - 2**64
    FINAL = 0xC4CEB9FE1A85EC53 - 2**64
    FORCED = 0x62A9D9ED799705F5


def uniform(seed: torch.Tensor, position: torch.Tensor, purpose: Purpose) -> torch.Tensor:
    """One number for each position, the same on every device and in every order of calls.

    Args:
        seed: of each request, ``[bs]`` int64.
        position: what the draw is for, ``[bs, ...]``, any integer type. A draw must decide one thing only: give the
            position of the token that it decides, or of the step where a step decides once.
        purpose: keeps apart the draws that are made for one position.

    Returns:
        float32 of ``position``'s shape, multiples of 2^-24 from 0 up to but not including 1.

    Order:
        Queues operators on the current stream; the host does not block. No state, hence nothing to order.

    Example:
        >>> seed, position = torch.tensor([7]), torch.tensor([[3, 4]])
        >>> both = uniform(seed, position, Purpose.TARGET)
        >>> bool(both[0, 1] == uniform(seed, position[:, 1], Purpose.TARGET)[0])
        True
    """
    of_request = (seed * _SEED_STRIDE + int(purpose)).view(-1, *[1] * (position.dim() - 1))
    key = torch.add(of_request, position, alpha=_POSITION_STRIDE)
    # Multiplication wraps. The shift repeats the sign, which costs a bit of the high half and none of the low one.
    for _ in range(2):
        key = (key ^ (key >> 32)) * _MULTIPLIER
    high_bits = (key >> (64 - _MANTISSA_BITS)) & (2**_MANTISSA_BITS - 1)
    return torch.mul(high_bits.to(torch.float32), 2.0**-_MANTISSA_BITS)
