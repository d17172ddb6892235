"""Random nano models and batches of ragged requests, for the tests of this folder."""

from dataclasses import dataclass

import torch
from torch import Tensor

from refimpl.model.attention import DenseAttention, PagedAttention, PagedMetadata
from refimpl.model.config import ModelConfig
from refimpl.model.qwen3 import Qwen3
from refimpl.model.registry import random_target
from refimpl.model.shapes import FAMILIES

NANO = FAMILIES["nano"]
SLOTS, WIDTH = 200, 64


def nano_target(config: ModelConfig = NANO.target) -> Qwen3:
    """A nano target with random weights large enough that attention is far from uniform."""
    target = random_target(config)
    for parameter in target.parameters():
        if parameter.dim() > 1:
            parameter.mul_(4.0)
    return target


def tokens(*shape: int, seed: int = 3) -> Tensor:
    return torch.randint(0, NANO.target.vocab_size, shape, generator=torch.Generator().manual_seed(seed))


def dense(config: ModelConfig) -> DenseAttention:
    return DenseAttention(window=config.sliding_window, sliding_layers=config.sliding_layers)


@dataclass
class Pool:
    """Paged KV with slots dealt out in no order, and the page table of each request."""

    k: list[Tensor]
    v: list[Tensor]
    page_table: Tensor

    @classmethod
    def of(cls, layers: int, requests: int, kv_heads: int = 1, head_dim: int = 32) -> "Pool":
        # Poison: an entry that was never written must not be read.
        caches = [torch.full((SLOTS, kv_heads, head_dim), float("nan")) for _ in range(2 * layers)]
        order = torch.randperm(SLOTS - 1, generator=torch.Generator().manual_seed(7)) + 1
        page_table = order[: requests * WIDTH].reshape(requests, WIDTH).int()
        return cls(caches[:layers], caches[layers:], page_table)

    def metadata(self, before: list[int], new: list[int], **more: object) -> PagedMetadata:
        """New tokens ``new[b]`` behind ``before[b]`` tokens that are in the pool."""
        spans = zip(range(len(new)), before, new, strict=True)
        slots = torch.cat([self.page_table[b, start : start + count] for b, start, count in spans]).long()
        return PagedMetadata(
            slots=slots,
            page_table=self.page_table[: len(new)],
            kv_lens=torch.tensor([b + n for b, n in zip(before, new, strict=True)], dtype=torch.int32),
            q_starts=torch.tensor([0, *new]).cumsum(0).int(),
            max_q_len=max(new),
            **more,  # type: ignore[arg-type]
        )

    def attention(self, metadata: PagedMetadata, sliding: PagedMetadata | None = None, layers: tuple[int, ...] = ()):
        return PagedAttention(self.k, self.v, metadata, sliding, layers)


def spans(before: list[int], new: list[int]) -> Tensor:
    """Positions of the new tokens, flat."""
    return torch.cat([torch.arange(start, start + count) for start, count in zip(before, new, strict=True)])
