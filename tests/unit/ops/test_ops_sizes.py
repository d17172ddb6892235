"""Sizes that do not fit are refused before a kernel would write outside of its rows."""

import pytest
import torch

from refimpl.model import ops


def test_keys_of_other_heads_than_the_cache_are_refused() -> None:
    k, cache, slots = torch.zeros(3, 5, 8), torch.zeros(9, 1, 8), torch.arange(3)
    with pytest.raises(ValueError, match="5 heads into a cache of 1"):
        ops.store_kv(k, k, cache, cache, slots)
