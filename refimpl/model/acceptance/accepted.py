"""What a verify leaves: how many drafts were accepted, and which tokens come out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional as F

PADDING = -1


@dataclass(frozen=True)
class Accepted:
    """The outcome of verifying ``k`` drafts of each request.

    Args:
        num_accepted: ``[bs]`` int64, drafts accepted, 0 to ``k``.
        accept_len: ``[bs]`` int64, ``num_accepted + 1``: tokens that come out, and by how much the sequence grows.
        tokens: ``[bs, k+1]`` int64: the accepted drafts, the target's own token, and ``PADDING`` behind it.
    """

    num_accepted: torch.Tensor
    accept_len: torch.Tensor
    tokens: torch.Tensor


def emit(draft_tokens: torch.Tensor, num_accepted: torch.Tensor, last: torch.Tensor) -> Accepted:
    """The outcome where ``num_accepted`` is known.

    Args:
        draft_tokens: ``[bs, k]`` int64.
        num_accepted: ``[bs]`` int64.
        last: ``[bs]`` int64, the target's own token behind the accepted drafts.
    """
    place = torch.arange(draft_tokens.shape[1] + 1, device=draft_tokens.device)
    behind = torch.where(place == num_accepted[:, None], last[:, None], PADDING)
    tokens = torch.where(place < num_accepted[:, None], F.pad(draft_tokens, (0, 1)), behind)
    return Accepted(num_accepted, num_accepted + 1, tokens)


def last_accepted(accepted: Accepted) -> torch.Tensor:
    """``[bs]`` int64: the target's own token, which is the next step's anchor."""
    return accepted.tokens.gather(1, accepted.num_accepted[:, None]).squeeze(1)
