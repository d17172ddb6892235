"""When each step of a peer's loop ended, by the host's clock."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass
class StepClock:
    """A stopping criterion of transformers that never stops: it notes the time and the length at every call.

    `generate` asks its criteria once a step, after it has waited for the step's tokens. Assisted decoding asks twice
    a cycle: about the drafts, then about what was kept; `kept` tells the second kind from the first.
    """

    seconds: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    _never: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: object, **kwargs: Any) -> torch.Tensor:
        """Note now; never stop.

        Args:
            input_ids: ``[bs, length]`` prompt and tokens so far.
            scores: not looked at.
            kwargs: not looked at.

        Returns:
            ``[bs]`` bool on the device of `input_ids`, all False.
        """
        self.seconds.append(time.perf_counter())
        self.lengths.append(int(input_ids.shape[1]))
        if self._never is None:
            self._never = torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)
        return self._never

    def steps_ms(self, skip: int) -> list[float]:
        """Milliseconds from step to step of `generate`, without the first `skip`."""
        return between_ms(self.seconds[skip:])

    def kept(self) -> "StepClock":
        """The calls about tokens that were kept: every second one of assisted decoding."""
        return StepClock(self.seconds[1::2], self.lengths[1::2])

    def accept_lens(self, skip: int) -> list[int]:
        """Tokens that each step added, without the first `skip`."""
        lengths = self.lengths[skip:]
        return [after - before for before, after in itertools.pairwise(lengths)]


def between_ms(seconds: Sequence[float]) -> list[float]:
    """Milliseconds between one time and the next.

    >>> between_ms([1.0, 1.5, 1.75])
    [500.0, 250.0]
    """
    return [1000 * (after - before) for before, after in itertools.pairwise(seconds)]
