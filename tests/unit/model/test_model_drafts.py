import dataclasses

import pytest
import torch

from refimpl.model.attention import DenseAttention, DenseCache
from refimpl.model.dflash import DFlash
from refimpl.model.eagle import Eagle3
from refimpl.model.mtp import MultiLayerEagle
from refimpl.model.registry import build_draft, random_draft
from tests.unit.model.models import NANO, Pool, nano_target, spans, tokens

TARGET = nano_target()
FEATURES = NANO.dflash.feature_layers


def features_of(ids: torch.Tensor) -> torch.Tensor:
    _, features = TARGET(ids, torch.arange(ids.shape[1])[None], DenseAttention(), FEATURES)
    return features


@pytest.mark.parametrize("kind", NANO.drafts())
def test_a_draft_owns_neither_table_nor_head_of_its_target(kind: str) -> None:
    draft = build_draft(NANO.drafts()[kind], TARGET)
    shared = {id(parameter) for parameter in TARGET.parameters()}
    assert not shared & {id(parameter) for parameter in draft.parameters()}
    assert not any("embed" in name or "lm_head" in name for name in draft.state_dict())


def test_a_draft_of_another_width_is_an_error() -> None:
    with pytest.raises(ValueError, match="hidden_size 64 on a target of 96"):
        Eagle3(dataclasses.replace(NANO.eagle, hidden_size=64), TARGET)


def test_a_draft_that_wants_the_last_layer_is_an_error() -> None:
    with pytest.raises(ValueError, match="feature layer 3 on a target of 4 layers"):
        DFlash(dataclasses.replace(NANO.dflash, feature_layers=(0, 3)), TARGET)


def test_a_target_hands_out_no_feature_of_its_last_layer() -> None:
    with pytest.raises(ValueError, match=r"feature layer 3 .* name 0\.\.2"):
        TARGET(tokens(1, 2), torch.arange(2)[None], DenseAttention(), (3,))


@torch.no_grad()
def test_a_feature_is_the_output_of_a_model_that_ends_there() -> None:
    ids = tokens(1, 6)
    shorter = nano_target(dataclasses.replace(NANO.target, num_hidden_layers=2))
    shorter.load_state_dict(TARGET.state_dict(), strict=False)
    positions = torch.arange(6)[None]
    last, residual, _ = shorter.layers(shorter.embed(ids), positions, shorter.rotary.cos_sin, DenseAttention())
    torch.testing.assert_close(features_of(ids)[..., 96:192], residual + last)


@torch.no_grad()
def test_an_eagle_chain_over_paged_kv_equals_one_over_dense_kv() -> None:
    head, ids = random_draft(NANO.eagle, TARGET), tokens(1, 8)
    assert isinstance(head, Eagle3)
    fused = head.fuse(features_of(ids))
    cache, pool = DenseCache(), Pool.of(1, 1)
    next_ids = torch.cat([ids[:, 1:], tokens(1, 1, seed=5)], dim=1)
    dense = head(next_ids, fused, torch.arange(8)[None], DenseAttention(cache=cache))
    paged = head(next_ids[0], fused[0], torch.arange(8), pool.attention(pool.metadata([0], [8])))
    for step in range(8, 11):
        torch.testing.assert_close(paged[-1], dense[0, -1], atol=1e-5, rtol=1e-4)
        drafted = head.logits(dense[:, -1:]).argmax(-1)
        assert torch.equal(drafted[0], head.logits(paged[-1:]).argmax(-1))
        position = torch.tensor([step])
        dense = head(drafted, dense[:, -1:], position[None], DenseAttention(cache=cache))
        paged = head(drafted[0], paged[-1:], position, pool.attention(pool.metadata([step], [1])))


@torch.no_grad()
def test_each_head_of_a_multi_layer_eagle_has_kv_of_its_own() -> None:
    draft, ids = random_draft(NANO.mtp, TARGET), tokens(1, 9)
    assert isinstance(draft, MultiLayerEagle)
    cache, hidden = DenseCache(), draft.fuse(features_of(ids)[:, :6])
    for step in range(NANO.mtp.num_steps):
        hidden = draft(step, ids[:, 1 + step : 7 + step], hidden, torch.arange(6)[None], DenseAttention(cache=cache))
        assert [cache.length(layer) for layer in range(3)] == [6] * (step + 1) + [0] * (2 - step)
        assert draft.logits(step, hidden).shape == (1, 6, NANO.target.vocab_size)


def dflash_over(context: torch.Tensor, block_ids: torch.Tensor, draft: DFlash) -> torch.Tensor:
    """Hidden states of one block behind a context ``[1, n, d]``."""
    cache, length = DenseCache(), context.shape[1]
    for layer in range(draft.config.num_hidden_layers):
        cache.append(layer, *draft.context_kv(layer, context, torch.arange(length)[None]))
    positions = torch.arange(length, length + block_ids.shape[1])[None]
    return draft(block_ids, positions, DenseAttention(causal=False, cache=cache))


@torch.no_grad()
def test_a_dflash_block_over_paged_kv_equals_one_over_dense_kv() -> None:
    draft, lengths = random_draft(NANO.dflash, TARGET), [7, 3]
    assert isinstance(draft, DFlash)
    texts, size = [tokens(1, length, seed=length) for length in lengths], draft.config.block_size
    contexts = [draft.context(features_of(text)) for text in texts]
    blocks = draft.block(tokens(2))
    pool = Pool.of(draft.config.num_hidden_layers, 2)
    committed, flat = pool.metadata([0, 0], lengths), torch.cat(contexts, dim=1)[0]
    for layer in range(draft.config.num_hidden_layers):
        k, v = draft.context_kv(layer, flat, spans([0, 0], lengths))
        pool.k[layer][committed.slots], pool.v[layer][committed.slots] = k, v
    metadata = pool.metadata(lengths, [size, size], causal=False)
    paged = draft(blocks.flatten(), spans(lengths, [size, size]), pool.attention(metadata))
    for context, block, hidden in zip(contexts, blocks, paged.split(size), strict=True):
        torch.testing.assert_close(hidden, dflash_over(context, block[None], draft)[0], atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_every_slot_of_a_block_sees_every_other() -> None:
    draft, context = random_draft(NANO.dflash, TARGET), torch.randn(1, 5, 96)
    assert isinstance(draft, DFlash)
    block = draft.block(tokens(1))
    changed = block.clone()
    changed[0, -1] = 5
    moved = (dflash_over(context, block, draft) - dflash_over(context, changed, draft)).abs().amax(-1)[0]
    assert moved.min() > 1e-6


def test_a_block_is_the_anchor_and_masks() -> None:
    draft = random_draft(NANO.dflash, TARGET)
    assert isinstance(draft, DFlash)
    assert draft.block(torch.tensor([4, 9])).tolist() == [[4, *[4095] * 7], [9, *[4095] * 7]]


def test_gradients_of_a_draft_reach_all_of_it_and_nothing_of_the_target() -> None:
    TARGET.requires_grad_(False)
    ids = tokens(1, 9)
    for config in NANO.drafts().values():
        draft = build_draft(config, TARGET)
        if isinstance(draft, DFlash):
            hidden = dflash_over(draft.context(features_of(ids)), draft.block(ids[:, -1]), draft)
            draft.logits(hidden).square().mean().backward()
        elif isinstance(draft, Eagle3):
            hidden = draft(ids, draft.fuse(features_of(ids)), torch.arange(9)[None], DenseAttention())
            draft.logits(hidden).square().mean().backward()
        else:
            hidden, cache = draft.fuse(features_of(ids)), DenseCache()
            for step in range(config.num_steps):
                hidden = draft(step, ids, hidden, torch.arange(9)[None], DenseAttention(cache=cache))
                draft.logits(step, hidden).square().mean().backward(retain_graph=True)
        without = [name for name, parameter in draft.named_parameters() if parameter.grad is None]
        assert without == []
        assert all(parameter.grad is None for parameter in TARGET.parameters())
