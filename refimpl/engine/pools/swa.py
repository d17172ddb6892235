"""Two pools for a model of which some layers see a sliding window alone: those need slots for the window only.

A token has a slot in the full pool for as long as its request runs; `req_to_token` holds that one. Its twin, the slot
in the sliding layers' smaller pool, is found through the map `full_to_swa`, and goes to other tokens as soon as the
window has moved on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from refimpl.engine.pools.allocator import TokenToKVPoolAllocator, twice
from refimpl.engine.pools.kv_pool import KVPool


class SWATokenToKVPoolAllocator:
    """Hands out slots in both pools together, and takes the twins back earlier.

    Args:
        num_slots: Slots for tokens in the full pool, numbered from 1.
        num_swa_slots: Slots for tokens in the sliding layers' pool, numbered from 1; at most `num_slots`.
        device: Where the stacks and the map lie.
        streams: Streams that may call, if that is to be checked; see Order.
    Attributes:
        full, swa: The allocator of either pool.
        full_to_swa: `[num_slots + 1]` int32, on the device: the twin of each full slot; 0, the padding, for one that
            has none, being free or out of the window.
    Raises:
        ValueError: A size is below 1, or the sliding pool is the larger.
    Order:
        All methods but `translate` are called like those of `TokenToKVPoolAllocator`, on the schedule stream. They
        write the map, which the forward reads. RAW: the forward waits for the schedule stream before it translates.
        WAR: `free_swa` and `free` run while results are processed, with a forward in flight that may read the very
        cells, if its request ended one step ago. They have to come behind its last `translate`.
    Source:
        sgl-project/sglang, `SWATokenToKVPoolAllocator` in `mem_cache/allocator/swa.py`, 0.5.23; the race on the map is
        that of pull request 26380.
    """

    def __init__(self, num_slots: int, num_swa_slots: int, device: str, streams: Sequence[Any] = ()) -> None:
        if num_swa_slots > num_slots:
            raise ValueError(
                f"SWA: num_swa_slots={num_swa_slots} is more than num_slots={num_slots}: a token without a full slot "
                "has no twin, so give at most as many"
            )
        self.full = TokenToKVPoolAllocator(num_slots, device, streams, name="full KV slots")
        self.swa = TokenToKVPoolAllocator(num_swa_slots, device, streams, name="sliding KV slots")
        self.full_to_swa = torch.zeros(num_slots + 1, dtype=torch.int32, device=device)

    def available(self) -> int:
        """How many tokens get a slot in both pools now."""
        return min(self.full.available(), self.swa.available())

    def alloc(self, n: int) -> torch.Tensor | None:
        """Takes `n` slots in each pool and pairs them, or none: None if one of the pools has fewer.

        Returns:
            The full slots, `[n]` int32, on the device: a copy, as with `TokenToKVPoolAllocator`.
        Raises:
            ValueError: `n` is negative.
        Order: writes the map on the current stream, cells of free slots alone; the host does not block.
        """
        full = self.alloc_view(n)
        return None if full is None else full.clone()

    def alloc_view(self, n: int) -> torch.Tensor | None:
        """As `alloc`, but a part of the stack of full slots, as `TokenToKVPoolAllocator.alloc_view`.

        Order: as of that one; and it writes the map, cells of free slots alone.
        """
        if n > self.available():
            return None
        full, swa = self.full.alloc_view(n), self.swa.alloc_view(n)
        assert full is not None, "both pools have n slots, as was seen above"
        assert swa is not None, "both pools have n slots, as was seen above"
        self.full_to_swa[full] = swa
        return full

    def free_swa(self, full_slots: torch.Tensor, n: int) -> None:
        """Gives back the twins of tokens that have left the window; the tokens keep their full slots.

        Args:
            full_slots: `[n]` integers on the device, each with a twin: the caller keeps for each request how many of
                its tokens were evicted, and passes none of them again.
            n: How many there are by the caller's own account.
        Raises:
            RuntimeError: Account and tensor differ, or more come back than are out.
        Order: reads and then zeroes cells of the map on the current stream; the host does not block.
        """
        self.swa.free(self.full_to_swa[full_slots], n)
        # A fill takes its 0 along as an argument; `map[slots] = 0` would copy it from the host, and wait.
        self.full_to_swa.index_fill_(0, full_slots.long(), 0)

    def free(self, full_slots: torch.Tensor, n: int, evicted: int = 0) -> None:
        """Gives back the slots of a request's tokens, and the twins that they still have.

        Args:
            full_slots: `[n]` integers on the device, in the order of the tokens.
            n: How many there are by the caller's own account.
            evicted: How many of them, from the first on, `free_swa` was called for. A count of the host's: which cells
                of the map are 0 the device alone knows.
        Raises:
            ValueError: `evicted` is not between 0 and `n`.
            RuntimeError: Account and tensor differ, or more come back than are out.
        Order: as `free_swa`.
        """
        if not 0 <= evicted <= n:
            raise ValueError(f"SWA: evicted={evicted} of n={n} slots: count tokens of these alone")
        # The twins first: they are found by the slots, which may be a part of the very stack that they go back to.
        if evicted < n:
            self.free_swa(full_slots[evicted:], n - evicted)
        self.full.free(full_slots, n)

    def clear(self) -> None:
        """Makes every slot of both pools free, whoever had it; with nothing in flight that uses one.

        Order: writes the stacks and the map on the current stream; the host does not block.
        """
        self.full.clear()
        self.swa.clear()
        self.full_to_swa.zero_()

    def translate(self, full_slots: torch.Tensor) -> torch.Tensor:
        """The sliding pool's slots: of a page table, or of the tokens to be written.

        Tokens out of the window give 0, and no query sees them.

        Args:
            full_slots: Integers of any shape, on the device.
        Returns:
            int32 of the same shape, new memory of the current stream.
        Order:
            On the forward stream, once a step and before its shared reads are called done; every layer then uses this
            snapshot. To look up the map again later in the step is a WAR with the next `free_swa`.
        """
        return self.full_to_swa[full_slots]

    def check_blocking(self) -> None:
        """Checks both free lists, and that the map pairs each sliding slot that is out with one full slot that is out.

        For tests: it blocks the host.

        Raises:
            RuntimeError: A slot is free twice, or a pair is wrong.
        """
        self.full.check_blocking()
        self.swa.check_blocking()
        pairs = {full: twin for full, twin in enumerate(self.full_to_swa.tolist()) if twin}
        out = set(range(1, self.swa.num_slots + 1)) - set(self.swa.free_slots_blocking())
        free_with_twin = sorted(set(self.full.free_slots_blocking()) & pairs.keys())
        if free_with_twin or twice(list(pairs.values())) or set(pairs.values()) != out:
            raise RuntimeError(
                f"full_to_swa: free full slots {free_with_twin} have a twin, or the twins {sorted(pairs.values())} are "
                f"not the sliding slots that are out, {sorted(out)}, once each: an account of evicted tokens is wrong"
            )


class SWAKVPool:
    """Keys and values of a model with sliding layers: each layer in the pool of its kind, under its own number.

    Args:
        num_slots, num_swa_slots: As of `SWATokenToKVPoolAllocator`.
        layers: The model's layers, of both kinds.
        sliding_layers: Which of them see a window; at least one, and not all.
        kv_heads, head_dim, dtype, device: As of `KVPool`.
    Attributes:
        full, swa: The pools, with the layers of their kind alone.
        k, v: One tensor for each layer of the model, `[slots + 1, kv_heads, head_dim]`: a sliding layer's is indexed by
            translated slots.
    Raises:
        ValueError: A sliding layer is none of the model's, or a size is below 1.
    Order: as `KVPool`.
    Example:
        >>> pool = SWAKVPool(
        ...     num_slots=63, num_swa_slots=15, layers=3, sliding_layers=(1,), kv_heads=1, head_dim=4,
        ...     dtype=torch.float32, device="cpu",
        ... )
        >>> [len(k) for k in pool.k], pool.is_sliding(1), pool.bytes()
        ([64, 16, 64], True, 4608)
    """

    def __init__(
        self,
        num_slots: int,
        num_swa_slots: int,
        layers: int,
        sliding_layers: Sequence[int],
        kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: str,
    ) -> None:
        self._sliding = frozenset(sliding_layers)
        if not self._sliding < set(range(layers)) or not self._sliding:
            raise ValueError(
                f"SWAKVPool: sliding_layers={sorted(self._sliding)} of layers={layers}: name some of the layers from 0 "
                f"to {layers - 1}, not all; for a model without both kinds take KVPool"
            )
        num_full = layers - len(self._sliding)
        self.full = KVPool(num_slots, num_full, kv_heads, head_dim, dtype, device)
        self.swa = KVPool(num_swa_slots, len(self._sliding), kv_heads, head_dim, dtype, device)
        self.k = self._by_layer(layers, self.full.k, self.swa.k)
        self.v = self._by_layer(layers, self.full.v, self.swa.v)

    @property
    def num_slots(self) -> int:
        """Slots for tokens in the full pool, whose numbers requests hold."""
        return self.full.num_slots

    def is_sliding(self, layer: int) -> bool:
        """Whether a layer sees a window alone, and so is indexed by translated slots."""
        return layer in self._sliding

    def bytes(self) -> int:
        """Size of the memory of both pools, the padding included."""
        return self.full.bytes() + self.swa.bytes()

    def move(
        self, src_slots: torch.Tensor, dst_slots: torch.Tensor, src_swa: torch.Tensor, dst_swa: torch.Tensor
    ) -> None:
        """Copies keys and values of tokens to other slots, in every layer.

        Args:
            src_slots, dst_slots: `[n]`, as of `KVPool.move`.
            src_swa, dst_swa: Their twins, `[n]`, from the step's own translation. All targets have one: they are the
                newest tokens, and in the window.
        Order: as `KVPool.move`.
        """
        self.full.move(src_slots, dst_slots)
        self.swa.move(src_swa, dst_swa)

    def _by_layer(
        self, layers: int, full: Sequence[torch.Tensor], swa: Sequence[torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        next_full, next_swa = iter(full), iter(swa)
        return tuple(next(next_swa if self.is_sliding(layer) else next_full) for layer in range(layers))
