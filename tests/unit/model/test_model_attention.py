import pytest
import torch

from refimpl.model.attention import DenseAttention, DenseCache, PagedAttention
from refimpl.model.registry import slide_odd_layers
from tests.unit.model.models import NANO, Pool, dense, nano_target, spans, tokens

CONFIGS = pytest.mark.parametrize("config", [NANO.target, slide_odd_layers(NANO.target, 4)], ids=["full", "sliding"])


@CONFIGS
@torch.no_grad()
def test_paged_ragged_prefill_then_steps_equal_dense_over_whole_texts(config) -> None:
    target, lengths = nano_target(config), [5, 12, 1]
    texts = [tokens(1, length + 7, seed=length) for length in lengths]
    pool, before = Pool.of(config.num_hidden_layers, len(texts)), [0, 0, 0]
    seen: list[list[torch.Tensor]] = [[], [], []]
    for new in (lengths, [1, 1, 1], [4, 2, 3], [2, 4, 3]):
        full = pool.metadata(before, new)
        window = pool.metadata(before, new, window=config.sliding_window) if config.sliding_layers else None
        ids = torch.cat([text[0, start : start + count] for text, start, count in zip(texts, before, new, strict=True)])
        hidden, _ = target(ids, spans(before, new), pool.attention(full, window, config.sliding_layers))
        for kept, part in zip(seen, hidden.split(new), strict=True):
            kept.append(part)
        before = [start + count for start, count in zip(before, new, strict=True)]
    for text, parts in zip(texts, seen, strict=True):
        whole, _ = target(text, torch.arange(text.shape[1])[None], dense(config))
        torch.testing.assert_close(torch.cat(parts), whole[0], atol=2e-5, rtol=1e-4)


@CONFIGS
@torch.no_grad()
def test_a_dense_cache_gives_what_one_forward_gives(config) -> None:
    target, ids, cache = nano_target(config), tokens(2, 14), DenseCache()
    window = {"window": config.sliding_window, "sliding_layers": config.sliding_layers}
    parts = []
    for start, end in ((0, 6), (6, 7), (7, 14)):
        part, _ = target(ids[:, start:end], torch.arange(start, end)[None], DenseAttention(cache=cache, **window))
        parts.append(part)
    whole, _ = target(ids, torch.arange(14)[None], dense(config))
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=2e-5, rtol=1e-4)


@torch.no_grad()
def test_a_cropped_cache_forgets_what_was_cropped() -> None:
    target, ids, cache = nano_target(), tokens(1, 9), DenseCache()
    target(ids[:, :5], torch.arange(5)[None], DenseAttention(cache=cache))
    target(tokens(1, 3, seed=8), torch.arange(5, 8)[None], DenseAttention(cache=cache))
    cache.crop(5)
    assert cache.length() == 5
    after, _ = target(ids[:, 5:], torch.arange(5, 9)[None], DenseAttention(cache=cache))
    whole, _ = target(ids, torch.arange(9)[None], DenseAttention())
    torch.testing.assert_close(after, whole[:, 5:], atol=2e-5, rtol=1e-4)


@torch.no_grad()
def test_without_a_window_a_sliding_model_differs() -> None:
    config = slide_odd_layers(NANO.target, 4)
    target, ids = nano_target(config), tokens(1, 14)
    with_window, _ = target(ids, torch.arange(14)[None], dense(config))
    without, _ = target(ids, torch.arange(14)[None], DenseAttention())
    torch.testing.assert_close(with_window[:, :4], without[:, :4], atol=2e-5, rtol=1e-4)
    assert (with_window[:, 4:] - without[:, 4:]).abs().max() > 1e-2


@torch.no_grad()
def test_a_tree_in_the_tail_mask_equals_each_of_its_branches() -> None:
    # Root 0 with children 1 and 2; 3 below 1. Depth is the position past the text.
    target, text, nodes, depth = nano_target(), tokens(1, 6), tokens(4, seed=11), torch.tensor([0, 1, 1, 2])
    ancestors = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 0, 1]]).bool()
    pool = Pool.of(target.config.num_hidden_layers, 1)
    target(text[0], torch.arange(6), pool.attention(pool.metadata([0], [6])))
    tree = pool.metadata([6], [4], tail_mask=ancestors[None])
    hidden, _ = target(nodes, 6 + depth, pool.attention(tree))
    for path in ([0, 1, 3], [0, 2]):
        branch = torch.cat([text, nodes[path][None]], dim=1)
        whole, _ = target(branch, torch.arange(branch.shape[1])[None], DenseAttention())
        torch.testing.assert_close(hidden[path], whole[0, 6:], atol=2e-5, rtol=1e-4)


def test_sliding_layers_without_their_metadata_are_an_error() -> None:
    pool = Pool.of(1, 1)
    with pytest.raises(ValueError, match="given together"):
        PagedAttention(pool.k, pool.v, pool.metadata([0], [1]), None, (0,))
