"""What the engine and its peers are given to do: the same requests, from the same seed."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Workload:
    """Requests, and how far each is decoded.

    Args:
        requests: how many.
        prompt_tokens: tokens of each prompt, random: what they say does not change what a step costs.
        new_tokens: tokens to add to each.
        spread: how far requests differ: the shortest has `new_tokens - spread`, the longest as many more.

    Raises:
        ValueError: one of them is less than 1, or the spread leaves a request without tokens.
    """

    requests: int
    prompt_tokens: int = 64
    new_tokens: int = 128
    spread: int = 0

    def __post_init__(self) -> None:
        if min(self.requests, self.prompt_tokens, self.new_tokens) < 1:
            raise ValueError(f"{self}: every number of a workload but the spread is at least 1")
        if not 0 <= self.spread < self.new_tokens:
            raise ValueError(f"{self}: the spread is at least 0 and below new_tokens")

    @property
    def longest(self) -> int:
        """Tokens of a request when it is done."""
        return self.prompt_tokens + self.new_tokens + self.spread

    def lengths(self, seed: int = 0) -> list[int]:
        """New tokens of each request, drawn evenly within the spread."""
        generator = torch.Generator().manual_seed(seed)
        first, last = self.new_tokens - self.spread, self.new_tokens + self.spread
        drawn: list[int] = torch.randint(first, last + 1, (self.requests,), generator=generator).tolist()
        return drawn

    def prompts(self, vocab_size: int, seed: int = 0) -> list[list[int]]:
        """Token ids, all from the first nine tenths of the vocabulary, where no reserved token is."""
        generator = torch.Generator().manual_seed(seed)
        shape = (self.requests, self.prompt_tokens)
        ids: list[list[int]] = torch.randint(vocab_size * 9 // 10, shape, generator=generator).tolist()
        return ids
