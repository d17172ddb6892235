"""Accept lengths that are made up, for timing: random weights accept next to nothing, so their step would be short.

The text that comes out is not the target's. Nothing but speed may be read off a run with it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from refimpl.model.acceptance.accepted import Accepted, emit
from refimpl.model.sampling import Purpose, uniform


class ForcedAcceptance:
    """Draws each request's accept length on the device, from a histogram, instead of finding it.

    A draw depends on the request's seed and on the place of its anchor, so every schedule draws the same lengths.

    Args:
        counts: how often each accept length was seen, from 1 on.
        device: where the steps run.

    Raises:
        ValueError: Nothing was counted, or a count is negative.

    Example:
        >>> forced = ForcedAcceptance([0, 0, 1], "cpu")
        >>> drafts, target = torch.tensor([[5, 6, 7]]), torch.tensor([[1, 2, 3, 4]])
        >>> forced.accept(drafts, target, seed=torch.tensor([0]), seq_lens=torch.tensor([9])).tokens.tolist()
        [[5, 6, 3, -1]]
    """

    def __init__(self, counts: Sequence[int], device: str) -> None:
        if not counts or min(counts) < 0 or sum(counts) == 0:
            raise ValueError(f"accept length counts {list(counts)}: give how often each length from 1 on was seen")
        self.counts = tuple(counts)
        shares = torch.tensor(self.counts, dtype=torch.float64).cumsum(0) / sum(self.counts)
        self._cumulative = shares.to(device)

    @classmethod
    def fixed(cls, accept_len: int, device: str) -> ForcedAcceptance:
        """Every verify emits ``accept_len`` tokens.

        Raises:
            ValueError: Less than one token.
        """
        if accept_len < 1:
            raise ValueError(f"accept_len={accept_len}: a verify emits at least one token")
        return cls([0] * (accept_len - 1) + [1], device)

    @classmethod
    def recorded(cls, path: Path, device: str) -> ForcedAcceptance:
        """The histogram of a file: a JSON list of counts by accept length, from 1 on.

        Raises:
            ValueError: The file holds something else.
        """
        counts = json.loads(path.read_text())
        if not isinstance(counts, list) or not all(type(count) is int for count in counts):
            raise ValueError(f"{path}: give a JSON list of whole numbers, how often each accept length from 1 was seen")
        return cls(counts, device)

    @property
    def mean(self) -> float:
        """Tokens a verify, on average."""
        return sum(length * count for length, count in enumerate(self.counts, start=1)) / sum(self.counts)

    def accept(
        self, draft_tokens: torch.Tensor, target_argmax: torch.Tensor, seed: torch.Tensor, seq_lens: torch.Tensor
    ) -> Accepted:
        """Takes the place of ``verify_greedy``: real tokens, a made-up number of them.

        Args:
            draft_tokens: ``[bs, k]`` int64.
            target_argmax: ``[bs, k+1]`` int64.
            seed: ``[bs]`` int64.
            seq_lens: ``[bs]``, committed lengths before this step.

        Raises:
            ValueError: The histogram has lengths that ``k`` drafts cannot reach.

        Order:
            Queues operators on the current stream; the host does not block. ``seq_lens`` is read when they execute.
        """
        if len(self.counts) > target_argmax.shape[1]:
            raise ValueError(
                f"accept lengths up to {len(self.counts)} are forced on {draft_tokens.shape[1]} drafts: "
                f"give a histogram of at most {target_argmax.shape[1]} lengths"
            )
        u = uniform(seed, seq_lens, Purpose.FORCED)
        num_accepted = (self._cumulative <= u[:, None]).sum(-1)
        return emit(draft_tokens, num_accepted, target_argmax.gather(1, num_accepted[:, None]).squeeze(1))
