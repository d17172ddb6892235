"""`KVPool`: keys and values of every layer, one slot a token."""

from __future__ import annotations

import torch

from refimpl.engine.pools.contract import refuse_empty

SLOT_DIM = 2
"""Of all that a pool holds: keys and values, layers, slots, heads, numbers of a head."""


class KVPool:
    """Key and value memory of all layers; a token has the same slot in each.

    Slot 0 is padding: padded tokens of a captured graph write it, and rows of `req_to_token` that hold nothing point to
    it. It is finite, so that a masked read of it changes no result.

    Args:
        num_slots: Slots for tokens, numbered from 1; slot 0 comes on top.
        layers, kv_heads, head_dim: The model's.
        dtype: Of keys and values.
        device: Where they lie.
    Attributes:
        k, v: One tensor for each layer, `[num_slots + 1, kv_heads, head_dim]`, all of them parts of one allocation.
    Raises:
        ValueError: A size is below 1.
    Order:
        Zeroed on the stream current at construction; order the forward stream behind it. From then on the forward
        stream alone reads and writes, which is why a slot may have a new owner while a forward of the old one is in
        flight: both write in the order in which they were submitted. An agent that brings KV from elsewhere is in no
        such order: it begins once that forward has run.
    Example:
        >>> pool = KVPool(num_slots=7, layers=2, kv_heads=1, head_dim=4, dtype=torch.bfloat16, device="cpu")
        >>> len(pool.k), list(pool.v[1].shape), pool.bytes()
        (2, [8, 1, 4], 256)
    """

    def __init__(
        self, num_slots: int, layers: int, kv_heads: int, head_dim: int, dtype: torch.dtype, device: str
    ) -> None:
        refuse_empty("KVPool", num_slots=num_slots, layers=layers, kv_heads=kv_heads, head_dim=head_dim)
        self.num_slots = num_slots
        self._kv = torch.zeros(2, layers, num_slots + 1, kv_heads, head_dim, dtype=dtype, device=device)
        self.k: tuple[torch.Tensor, ...] = self._kv[0].unbind(0)
        self.v: tuple[torch.Tensor, ...] = self._kv[1].unbind(0)

    def bytes(self) -> int:
        """Size of the memory, the padding included."""
        return self._kv.nbytes

    def move(self, src_slots: torch.Tensor, dst_slots: torch.Tensor) -> None:
        """Copies keys and values of tokens to other slots, in every layer, as if all were read before one is written.

        After a tree was verified the accepted path lies scattered over the slots of the tree, and moves to those of its
        first tokens, so that a slot can be a source and a target of one call.

        Args:
            src_slots: `[n]` integers on the device.
            dst_slots: `[n]` integers on the device; a slot is at most once a target, but for slot 0. To move less than
                `n`, give the rest the target 0, or their own slot.
        Order: on the forward stream, behind the verify that wrote the sources. The host does not block.
        """
        self.put(dst_slots, self.take(src_slots))

    def take(self, slots: torch.Tensor) -> torch.Tensor:
        """Keys and values of tokens, in every layer.

        Args:
            slots: `[n]` integers on the device.
        Returns:
            `[2, layers, n, kv_heads, head_dim]`, new memory of the current stream: keys first.
        Order: reads the pool on the current stream; the host does not block.
        """
        return self._kv.index_select(SLOT_DIM, slots)

    def put(self, slots: torch.Tensor, kv: torch.Tensor) -> None:
        """Writes keys and values of tokens, in every layer.

        Args:
            slots: `[n]` integers on the device, each at most once, but for slot 0.
            kv: as `take` gives it.
        Order: writes the pool on the current stream; the host does not block.
        """
        self._kv.index_copy_(SLOT_DIM, slots.long(), kv)
