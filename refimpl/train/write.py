"""The target writes: thousands of rows at once over a dense KV cache, one captured graph a stretch of positions."""

import torch
from torch import Tensor

from refimpl.model.qwen3 import Qwen3

STRETCH = 128
"""Positions for which one graph is captured: it attends over the cache up to the end of its stretch."""


class CachedAttention:
    """One new token a row over a dense cache, whose fill is the same in every row and is read on the device.

    Args:
        caches: per layer K and V, ``[rows, length, kv_heads, hd]`` each.
        position: ``[1]`` int64, where the new token stands.
        end: how many entries are looked at, at least ``position + 1``.
    """

    def __init__(self, caches: list[tuple[Tensor, Tensor]], position: Tensor, end: int) -> None:
        """Holds them."""
        self._caches, self._position = caches, position
        self._visible = torch.arange(end, device=position.device) <= position
        self._end = end

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """``q`` ``[rows, 1, heads, hd]``, ``k`` and ``v`` ``[rows, 1, kv_heads, hd]``; as `AttentionBackend`."""
        keys, values = self._caches[layer]
        keys.index_copy_(1, self._position, k.to(keys.dtype))
        values.index_copy_(1, self._position, v.to(values.dtype))
        # The queries of a group are rows of one matrix, so that the cache is read once for all of them.
        grouped = q.squeeze(1).unflatten(1, (k.shape[2], -1)).to(keys.dtype)
        out = torch.nn.functional.scaled_dot_product_attention(
            grouped,
            keys[:, : self._end].transpose(1, 2),
            values[:, : self._end].transpose(1, 2),
            attn_mask=self._visible[None, None, None].expand(len(q), 1, grouped.shape[2], -1),
        )
        return out.flatten(1, 2)[:, None].to(q.dtype)


class Writer:
    """Continues rows of one length, at a temperature of each row's own, with buffers and graphs that are kept.

    Args:
        target: in the dtype to write in.
        rows: how many at once.
        length: of each, prompt and continuation.
    """

    def __init__(self, target: Qwen3, rows: int, length: int) -> None:
        """Allocates; graphs are captured by the first `write`."""
        config, device = target.config, target.device
        shape = (rows, length, config.num_key_value_heads, config.head_dim)
        self._target, self._length = target, length
        self._caches = [
            (
                torch.zeros(shape, device=device, dtype=target.dtype),
                torch.zeros(shape, device=device, dtype=target.dtype),
            )
            for _ in range(config.num_hidden_layers)
        ]
        self._tokens = torch.zeros(rows, length, dtype=torch.int64, device=device)
        self._prompt_lens = torch.ones(rows, dtype=torch.int64, device=device)
        self._temperatures = torch.zeros(rows, device=device)
        self._position = torch.zeros(1, dtype=torch.int64, device=device)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}

    @torch.no_grad()
    def write(self, tokens: Tensor, prompt_lens: Tensor, temperatures: Tensor) -> Tensor:
        """Keeps the first ``prompt_lens`` tokens of each row and writes the others.

        Args:
            tokens: ``[rows, length]`` int64.
            prompt_lens: ``[rows]`` int64, at least 1.
            temperatures: ``[rows]`` fp32; 0 is greedy.

        Returns:
            ``[rows, length]``, a tensor of its own.
        """
        if self._position.is_cuda and not self._graphs:
            self._capture()
        self._tokens.copy_(tokens)
        self._prompt_lens.copy_(prompt_lens)
        self._temperatures.copy_(temperatures)
        self._position.zero_()
        for position in range(self._length - 1):
            end = self._end(position)
            if self._graphs:
                self._graphs[end].replay()
            else:
                self._step(end)
        return self._tokens.clone()

    def _end(self, position: int) -> int:
        return min(self._length, (position // STRETCH + 1) * STRETCH)

    def _capture(self) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):  # what is allocated lazily must be there before the capture
                self._step(self._length)
        torch.cuda.current_stream().wait_stream(stream)
        for end in sorted({self._end(position) for position in range(self._length - 1)}):
            self._graphs[end] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graphs[end]):
                self._step(end)

    def _step(self, end: int) -> None:
        """One token of every row: runs the token at the position, writes the one after it unless the prompt has it."""
        attention = CachedAttention(self._caches, self._position, end)
        ids = self._tokens.index_select(1, self._position)
        hidden, _ = self._target(ids, self._position.expand_as(ids), attention)
        logits = self._target.logits(hidden)[:, 0].float()
        # The largest of log p / T + Gumbel noise is a sample; without the noise it is the likeliest token.
        noise = -torch.empty_like(logits).exponential_().log()
        chosen = (logits + self._temperatures[:, None] * noise).argmax(-1)
        after = self._position + 1
        given = self._tokens.index_select(1, after)[:, 0]
        token = torch.where(after < self._prompt_lens, given, chosen)
        self._tokens.index_copy_(1, after, token[:, None])
        self._position.add_(1)
