"""What a draft is trained to say at a place is what it says there when it serves: nothing else earns acceptance."""

import pytest
import torch

from refimpl.model import ops, registry
from refimpl.model.shapes import FAMILIES
from refimpl.train import dflash, eagle, mtp
from refimpl.train.distill import teach
from refimpl.train.evaluate import forced_logits
from refimpl.train.propose import drafter

ROWS, LENGTH = 3, 40
TIGHT = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture(scope="module")
def target():
    return registry.random_target(FAMILIES["nano"].target, seed=3)


@pytest.fixture
def tokens():
    return torch.randint(0, 4000, (ROWS, LENGTH), generator=torch.Generator().manual_seed(7))


def served(target, draft, tokens, anchors):
    return forced_logits(target, drafter(draft), tokens, draft.config.feature_layers, anchors).logits


def made(kind, target):
    return registry.random_draft(FAMILIES["nano"].drafts()[kind], target, seed=5)


@pytest.mark.parametrize("anchor", [1, 9, 25])
def test_an_unrolled_eagle_step_says_what_the_serving_chain_says(target, tokens, anchor):
    draft = made("eagle", target)
    _, features = teach(target, tokens, draft.config.feature_layers)
    trained = eagle.unrolled_logits(draft, features, tokens, draft.config.num_steps)
    expected = torch.stack([logits[:, anchor - 1] for logits in trained], 1)
    torch.testing.assert_close(served(target, draft, tokens, torch.full((ROWS,), anchor)), expected, **TIGHT)


@pytest.mark.parametrize("anchor", [1, 9, 25])
def test_a_head_of_the_multi_layer_eagle_says_in_training_what_it_says_serving(target, tokens, anchor):
    draft = made("mtp", target)
    _, features = teach(target, tokens, draft.config.feature_layers)
    expected = torch.stack([logits[:, anchor - 1] for logits in mtp.chained_logits(draft, features, tokens)], 1)
    torch.testing.assert_close(served(target, draft, tokens, torch.full((ROWS,), anchor)), expected, **TIGHT)


def test_a_dflash_block_among_others_says_what_it_says_alone(target, tokens):
    draft = made("dflash", target)
    _, features = teach(target, tokens, draft.config.feature_layers)
    anchors = torch.tensor([[8, 9, 20], [31, 8, 12], [15, 16, 17]])
    trained = dflash.block_logits(draft, features, tokens, anchors)[:, :, 1:]
    for place in range(anchors.shape[1]):
        alone = served(target, draft, tokens, anchors[:, place])
        torch.testing.assert_close(alone, trained[:, place], **TIGHT)


def test_a_dflash_block_sees_nothing_at_or_after_its_anchor_but_the_anchor_token(target, tokens):
    draft, anchors = made("dflash", target), torch.full((ROWS, 1), 20)
    _, features = teach(target, tokens, draft.config.feature_layers)
    other_features, other_tokens = features.clone(), tokens.clone()
    other_features[:, 20:] += 1.0
    other_tokens[:, 21:] = 5
    before = dflash.block_logits(draft, features, tokens, anchors)
    torch.testing.assert_close(before, dflash.block_logits(draft, other_features, other_tokens, anchors))
    other_features[:, 19] += 1.0
    assert not torch.allclose(before, dflash.block_logits(draft, other_features, other_tokens, anchors))


@pytest.mark.parametrize("kind", ["eagle", "mtp"])
def test_a_chain_does_not_look_behind_the_tokens_it_is_given(target, tokens, kind):
    draft = made(kind, target)
    anchors = torch.full((ROWS,), 12)
    changed = tokens.clone()
    changed[:, 12 + drafter(draft).num_drafts + 1 :] = 5
    torch.testing.assert_close(served(target, draft, tokens, anchors), served(target, draft, changed, anchors))


def test_the_tests_would_see_features_that_are_one_token_late(target, tokens):
    draft = made("eagle", target)
    _, features = teach(target, tokens, draft.config.feature_layers)
    late = eagle.unrolled_logits(draft, features.roll(1, 1), tokens, draft.config.num_steps)
    expected = served(target, draft, tokens, torch.full((ROWS,), 9))
    assert not torch.allclose(expected[:, 0], late[0][:, 8], **TIGHT)


@pytest.mark.parametrize("kind", ["eagle", "mtp", "dflash"])
def test_every_parameter_of_a_draft_learns_and_the_target_does_not(target, tokens, kind):
    from refimpl.train import drafts
    from refimpl.train.loop import Optimizing
    from refimpl.train.plan import Training

    draft = made(kind, target).requires_grad_(True)
    training = Training(ROWS, Optimizing(1e-3), hard_share=0.5, anchors=3)
    with ops.reference():
        drafts.loss_of(draft, target, training)(*drafts.batch_of(draft, tokens, training)).backward()
    assert [name for name, each in draft.named_parameters() if each.grad is None or not each.grad.any()] == []
    assert all(each.grad is None for each in target.parameters())
