"""How a layer attends: over pages of a pool while serving, over dense tensors while training and in oracles.

A model calls an :class:`AttentionBackend` with a layer's number and its q, k, v; where K and V of earlier tokens live
is the backend's business.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from refimpl.model import ops


class AttentionBackend(Protocol):
    """What a layer needs: its K and V kept, and its queries answered."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attends.

        Args:
            layer: which KV cache.
            q: ``[..., heads, head_dim]``.
            k: ``[..., kv_heads, head_dim]``, of the same tokens.
            v: as ``k``.

        Returns:
            ``[..., heads, head_dim]``.
        """
        ...


@dataclass(frozen=True)
class PagedMetadata:
    """Which slots the new tokens of a batch get, and which kv entries each of them sees.

    The T new tokens lie flat, request after request. Query ``j`` of request ``b`` has kv index
    ``kv_lens[b] - q_len_b + j``.

    Args:
        slots: ``[T]`` int64, where K and V of the new tokens are written. Padding rows name slot 0.
        page_table: ``[bs, width]`` int32, a snapshot of the requests' rows of ``req_to_token``: slot by kv index.
        kv_lens: ``[bs]`` int32, kv entries of each request, the new ones included.
        q_starts: ``[bs + 1]`` int32, where each request's new tokens begin.
        max_q_len: the most new tokens of one request; on the host.
        causal: whether a query sees no later kv index than its own. False without a mask: it sees all of them.
        tail_mask: ``[bs, max_q_len, tail]`` bool, what each query sees of the last ``tail`` kv entries; it sees all
            before them. Given, it takes the place of ``causal``. Entry ``i`` is kv index ``kv_len - tail + i``.
        window: a query at kv index i sees only j > i - window; None: no window.

    Order:
        Tensors are read by the forward that they are given to, on its stream; whoever reuses them waits for it.
    """

    slots: Tensor
    page_table: Tensor
    kv_lens: Tensor
    q_starts: Tensor
    max_q_len: int
    causal: bool = True
    tail_mask: Tensor | None = None
    window: int | None = None


class PagedAttention:
    """Attention over paged KV: stores K and V at their slots, then attends through the page table.

    Args:
        k_caches, v_caches: per layer ``[num_slots, kv_heads, head_dim]``.
        metadata: of this batch.
        sliding: metadata of the layers that slide: their own slots and page table, and a window. None: none slides.
        sliding_layers: which layers these are.

    Order:
        Reads and writes the caches on the current stream. Two forwards that touch one slot must be ordered by the
        caller.

    Source:
        sgl-project/sglang, ``RadixAttention`` and its backends.
    """

    def __init__(
        self,
        k_caches: Sequence[Tensor],
        v_caches: Sequence[Tensor],
        metadata: PagedMetadata,
        sliding: PagedMetadata | None = None,
        sliding_layers: Sequence[int] = (),
    ) -> None:
        """Holds the caches and the metadata; copies nothing."""
        if bool(sliding_layers) != (sliding is not None):
            raise ValueError("PagedAttention: sliding layers and their metadata must be given together")
        self._k_caches = k_caches
        self._v_caches = v_caches
        self._metadata = metadata
        self._sliding = sliding
        self._sliding_layers = frozenset(sliding_layers)

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Stores ``k``, ``v`` ``[T, kv_heads, head_dim]`` and answers ``q`` ``[T, heads, head_dim]``."""
        ops.store_kv(k, v, *self.place(layer))
        return self.attend(layer, q)

    def place(self, layer: int) -> tuple[Tensor, Tensor, Tensor]:
        """The caches of a layer and the slots of the new tokens, for whoever stores K and V where they are made."""
        return self._k_caches[layer], self._v_caches[layer], self._metadata_of(layer).slots

    def attend(self, layer: int, q: Tensor) -> Tensor:
        """Answers ``q`` ``[T, heads, head_dim]``, K and V of the same tokens being stored."""
        metadata = self._metadata_of(layer)
        return ops.paged_attention(
            q,
            self._k_caches[layer],
            self._v_caches[layer],
            metadata.page_table,
            metadata.kv_lens,
            metadata.q_starts,
            metadata.max_q_len,
            metadata.causal,
            metadata.tail_mask,
            metadata.window,
            q.shape[-1] ** -0.5,
            settled=True,  # the op that stored K and V stands between
        )

    def _metadata_of(self, layer: int) -> PagedMetadata:
        if layer in self._sliding_layers:
            assert self._sliding is not None
            return self._sliding
        return self._metadata


class DenseCache:
    """K and V of every layer as plain tensors ``[b, t, kv_heads, head_dim]`` that grow by concatenation.

    Gradients flow through it, so training unrolls over it; oracles decode with it.
    """

    def __init__(self) -> None:
        """An empty cache."""
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Puts ``k``, ``v`` ``[b, t, kv_heads, head_dim]`` behind the layer's; returns all of them."""
        if layer in self._layers:
            k_before, v_before = self._layers[layer]
            k, v = torch.cat([k_before, k], dim=1), torch.cat([v_before, v], dim=1)
        self._layers[layer] = (k, v)
        return k, v

    def length(self, layer: int = 0) -> int:
        """Kv entries of a layer."""
        return self._layers[layer][0].shape[1] if layer in self._layers else 0

    def crop(self, length: int) -> None:
        """Keeps the first ``length`` entries of every layer, as after rejected drafts."""
        self._layers = {layer: (k[:, :length], v[:, :length]) for layer, (k, v) in self._layers.items()}


class DenseAttention:
    """Attention over dense tensors, differentiable.

    Args:
        mask: bool, broadcast to ``[b, heads, q_len, kv_len]``, True where a query sees an entry; None: see ``causal``.
        causal: without a mask: the last query is the last kv entry, and none sees a later one than itself. False: all
            see all.
        cache: where K and V of each call are appended; attention is over all that is in it. None: over the call's own.
        window: in sliding layers, a query at kv index i sees only j > i - window, mask or not.
        sliding_layers: the layers that slide.
    """

    def __init__(
        self,
        mask: Tensor | None = None,
        *,
        causal: bool = True,
        cache: DenseCache | None = None,
        window: int | None = None,
        sliding_layers: Sequence[int] = (),
    ) -> None:
        """Holds the arguments."""
        self._mask = mask
        self._causal = causal
        self._cache = cache
        self._window = window
        self._sliding_layers = frozenset(sliding_layers)

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Answers ``q`` ``[b, t, heads, head_dim]`` from ``k``, ``v`` ``[b, t, kv_heads, head_dim]`` and the cache."""
        if self._cache is not None:
            k, v = self._cache.append(layer, k, v)
        window = self._window if layer in self._sliding_layers else None
        q_len, kv_len, groups = q.shape[1], k.shape[1], q.shape[2] // k.shape[2]
        # A square causal pattern without a mask is the one case that SDPA's fast kernels know by name.
        named = self._mask is None and self._causal and window is None and q_len == kv_len
        mask = None if named else self._visible(q_len, kv_len, window, q.device)
        out = nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2),
            _spread(k, groups).transpose(1, 2),
            _spread(v, groups).transpose(1, 2),
            attn_mask=mask,
            is_causal=named,
        )
        return out.transpose(1, 2)

    def _visible(self, q_len: int, kv_len: int, window: int | None, device: torch.device) -> Tensor | None:
        mask = self._mask
        query = torch.arange(kv_len - q_len, kv_len, device=device)[:, None]
        entry = torch.arange(kv_len, device=device)[None, :]
        if mask is None and self._causal:
            mask = entry <= query
        if window is None:
            return mask
        in_window = entry > query - window
        return in_window if mask is None else mask & in_window


def _spread(x: Tensor, groups: int) -> Tensor:
    """``[b, t, kv_heads, hd]`` to ``[b, t, kv_heads * groups, hd]``: each key head once for each of its queries."""
    return x[:, :, :, None].expand(-1, -1, -1, groups, -1).flatten(2, 3)
