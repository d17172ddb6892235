"""What the engine and its peers are given to do: the same requests, from the same seed."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Workload:
    """Requests that arrive at once and are decoded to the same length.

    Args:
        requests: how many.
        prompt_tokens: tokens of each prompt, random: what they say does not change what a step costs.
        new_tokens: tokens to add to each.

    Raises:
        ValueError: one of them is less than 1.
    """

    requests: int
    prompt_tokens: int = 64
    new_tokens: int = 128

    def __post_init__(self) -> None:
        if min(self.requests, self.prompt_tokens, self.new_tokens) < 1:
            raise ValueError(f"{self}: every number of a workload is at least 1")

    @property
    def longest(self) -> int:
        """Tokens of a request when it is done."""
        return self.prompt_tokens + self.new_tokens

    def prompts(self, vocab_size: int, seed: int = 0) -> list[list[int]]:
        """Token ids, all from the first nine tenths of the vocabulary, where no reserved token is."""
        generator = torch.Generator().manual_seed(seed)
        shape = (self.requests, self.prompt_tokens)
        ids: list[list[int]] = torch.randint(vocab_size * 9 // 10, shape, generator=generator).tolist()
        return ids
