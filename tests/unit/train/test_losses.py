"""What the losses reward."""

import pytest
import torch
from torch.nn import functional

from refimpl.train.dflash import block_mask, draw_anchors, slot_weights
from refimpl.train.distill import cross_entropy
from refimpl.train.own_text import repetitions, unlikelihood


def logits(*shape, scale=3.0, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale


def test_unlikelihood_is_minus_log_of_one_minus_p():
    scores, tokens = logits(5, 7), torch.tensor([0, 1, 2, 3, 6])
    p = scores.softmax(-1)[torch.arange(5), tokens]
    torch.testing.assert_close(unlikelihood(scores, tokens), -torch.log1p(-p))


def test_unlikelihood_still_pushes_where_the_token_is_all_but_certain():
    scores = torch.zeros(1, 4)
    scores[0, 2] = 60.0
    scores.requires_grad_(True)
    unlikelihood(scores, torch.tensor([2])).sum().backward()
    assert scores.grad[0, 2] > 0.99


def naive_repetitions(row, run):
    ends = [tuple(row[at - run + 1 : at + 1]) if at >= run - 1 else None for at in range(len(row))]
    return [end is not None and end in ends[:at] for at, end in enumerate(ends)]


@pytest.mark.parametrize("run", [1, 2, 3, 6])
def test_a_token_repeats_where_it_completes_a_run_seen_before(run):
    rows = torch.randint(0, 3, (6, 40), generator=torch.Generator().manual_seed(run))
    expected = torch.tensor([naive_repetitions(row, run) for row in rows.tolist()])
    assert expected.any()
    assert not expected.all()
    assert repetitions(rows, run).equal(expected)


def test_the_soft_part_of_the_loss_is_least_at_the_teachers_distribution():
    teacher, tokens = logits(4, 9), torch.tensor([0, 1, 2, 3])
    least = cross_entropy(teacher, teacher, tokens, 0.0)
    for seed in range(1, 5):
        other = teacher + logits(4, 9, scale=0.5, seed=seed)
        assert (cross_entropy(other, teacher, tokens, 0.0) > least).all()


def test_the_hard_part_of_the_loss_is_cross_entropy_with_the_text():
    scores, tokens = logits(4, 9), torch.tensor([0, 1, 2, 3])
    expected = functional.cross_entropy(scores, tokens, reduction="none")
    torch.testing.assert_close(cross_entropy(scores, logits(4, 9, seed=1), tokens, 1.0), expected)


def test_a_slot_weighs_what_its_chance_adds_to_the_mean_length():
    chance = torch.tensor([0.9, 0.2, 0.7], dtype=torch.float64)
    trusted = (0.5 + 0.5 * chance).requires_grad_(True)
    trusted.cumprod(0).sum().backward()
    torch.testing.assert_close(slot_weights(chance), trusted.grad * trusted.detach())


def test_a_block_sees_the_context_before_its_anchor_and_all_of_itself_only():
    mask = block_mask(torch.tensor([[3, 5]]), context_length=6, block_size=2)[0, 0]
    assert mask.long().tolist() == [
        [1, 1, 1, 0, 0, 0, 1, 1, 0, 0],
        [1, 1, 1, 0, 0, 0, 1, 1, 0, 0],
        [1, 1, 1, 1, 1, 0, 0, 0, 1, 1],
        [1, 1, 1, 1, 1, 0, 0, 0, 1, 1],
    ]


def test_anchors_are_distinct_and_leave_room_for_a_block():
    anchors = draw_anchors(20, 64, 16, 30, torch.device("cpu"))
    assert all(len(set(row)) == 30 for row in anchors.tolist())
    assert int(anchors.max()) + 16 <= 64


def test_more_anchors_than_there_is_room_for_are_refused():
    with pytest.raises(ValueError, match="take fewer"):
        draw_anchors(1, 32, 16, 30, torch.device("cpu"))


def test_the_target_learns_what_weighs_and_unlearns_what_weighs_below_nothing():
    from refimpl.model import registry
    from refimpl.model.shapes import FAMILIES
    from refimpl.train.evaluate import held_out_loss
    from refimpl.train.target import loss

    target = registry.random_target(FAMILIES["nano"].target, seed=3)
    tokens = torch.randint(0, 4000, (2, 9), generator=torch.Generator().manual_seed(7))
    mean = torch.full((2, 9), 1 / 16)
    expected = held_out_loss(target, tokens, 1.0)["nats_per_token"]
    assert loss(target, tokens, mean).item() == pytest.approx(expected, abs=1e-3)
    assert loss(target, tokens, -mean).item() < 0.01  # no token of a random model is likely
    assert loss(target, tokens, torch.zeros(2, 9)).item() == 0


def test_own_text_is_learned_where_it_is_new_and_unlearned_where_it_loops(tmp_path):
    from refimpl.model import registry
    from refimpl.model.shapes import FAMILIES
    from refimpl.train import corpus
    from refimpl.train.own_text import GreedyText
    from refimpl.train.text import CorpusText

    corpus.save(tmp_path, corpus.TRAIN, torch.randint(0, 4000, (500,)).numpy())
    text = CorpusText(tmp_path, corpus.TRAIN, torch.device("cpu"), seed=0)
    target = registry.random_target(FAMILIES["nano"].target)
    target.embed_tokens.weight[:] = 0  # all tokens are as likely: the greedy one is always the first, a loop
    own = GreedyText(target, text, length=40, pool_rows=4)
    tokens, judged = own.batch(2)
    assert (tokens[:, 10:] == 0).all()  # prompts have a quarter of the row
    assert own.repeated_share == pytest.approx(22 / 23)
    assert (judged[:, :18] == 1).all()
    assert (judged[:, 18:] == -1).all()
