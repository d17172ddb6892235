"""Text that the target wrote, for drafts to learn from: prompts of the corpus, continued at serving temperatures."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from refimpl.model.qwen3 import Qwen3
from refimpl.train.text import CorpusText, write_shard
from refimpl.train.write import Writer


@dataclass(frozen=True)
class Writing:
    """What is written.

    Args:
        rows: at once, and in a shard.
        length: tokens of a row.
        prompt_tokens: the shortest and the longest prompt, from the training split.
        temperatures: each with its share of the rows; shares add up to 1.
    """

    rows: int
    length: int
    prompt_tokens: tuple[int, int]
    temperatures: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        """Rejects shares that are none, and prompts that leave nothing to write."""
        if abs(sum(share for _, share in self.temperatures) - 1) > 1e-6:
            raise ValueError(f"the shares of {self.temperatures} do not add up to 1")
        if not 0 < self.prompt_tokens[0] <= self.prompt_tokens[1] < self.length:
            raise ValueError(f"prompts of {self.prompt_tokens} tokens do not fit into rows of {self.length}")

    def of_rows(self, device: torch.device) -> torch.Tensor:
        """The temperature of each row, ``[rows]`` fp32."""
        values = torch.tensor([temperature for temperature, _ in self.temperatures], device=device)
        edges = torch.tensor([share for _, share in self.temperatures], device=device).cumsum(0)
        at = (torch.arange(self.rows, device=device) + 0.5) / self.rows
        return values[torch.searchsorted(edges, at).clamp(max=len(values) - 1)]


def write_until(
    target: Qwen3, prompts: CorpusText, writing: Writing, folder: Path, deadline: float, say: Callable[[str], None]
) -> dict[str, Any]:
    """Write shards into a folder until the deadline, one at least; says how much was written."""
    device, start = target.device, time.time()
    generator = torch.Generator(device).manual_seed(0)
    writer = Writer(target, writing.rows, writing.length)
    temperatures = writing.of_rows(device)
    shortest, longest = writing.prompt_tokens
    shards = 0
    while shards == 0 or time.time() < deadline:
        tokens = prompts.batch(writing.rows, writing.length)
        lens = torch.randint(shortest, longest + 1, (writing.rows,), generator=generator, device=device)
        write_shard(folder, shards, writer.write(tokens, lens, temperatures))
        shards += 1
        if shards == 1:
            say(f"first shard of {writing.rows * writing.length:,} tokens after {time.time() - start:.1f} s")
    seconds = time.time() - start
    tokens_written = shards * writing.rows * writing.length
    say(f"{tokens_written:,} tokens, {tokens_written / seconds / 1000:,.0f}k tokens/s")
    return {"shards": shards, "tokens": tokens_written, "seconds": round(seconds, 1)}
