"""A tree holds the likeliest nodes with all that is above them, and is walked from the root down."""

import pytest
import torch

from refimpl.model.acceptance import PADDING, DraftTree, build_tree, expand, verify_tree_greedy, verify_tree_rejection


def logs(*probabilities: float) -> torch.Tensor:
    return torch.tensor(probabilities).log()


def example() -> DraftTree:
    """Behind anchor 9: token 0 (0.6) with 1 (0.54) and 2 (0.06) below it, token 1 (0.4) with 0 and 1 (0.2 each)."""
    root = expand(torch.zeros(1, 1), logs(0.6, 0.4, 0.0)[None, None], topk=2)
    below = torch.stack([logs(0.0, 0.9, 0.1), logs(0.5, 0.5, 0.0)])[None]
    return build_tree(torch.tensor([9]), [root, expand(root.scores, below, topk=2)], num_draft_tokens=6)


def test_an_expansion_scores_paths_and_goes_on_from_the_best() -> None:
    root = expand(torch.zeros(1, 1), logs(0.6, 0.4, 0.0)[None, None], topk=2)
    assert root.tokens.tolist() == [[0, 1]]
    below = torch.stack([logs(0.05, 0.9, 0.05), logs(0.5, 0.3, 0.2)])[None]
    step = expand(root.scores, below, topk=2)
    assert step.candidate_scores.exp()[0].tolist() == pytest.approx([0.54, 0.03, 0.2, 0.12])
    assert step.tokens.tolist() == [[1, 0]]
    assert step.parents.tolist() == [[0, 1]]
    assert step.scores.exp()[0].tolist() == pytest.approx([0.54, 0.2])


def test_a_tree_knows_parents_depths_and_who_is_above_whom() -> None:
    tree = example()
    assert tree.tokens.tolist()[0][:4] == [9, 0, 1, 1]
    assert tree.parents.tolist() == [[0, 0, 0, 1, 2, 2]]
    assert sorted(tree.tokens.tolist()[0][4:]) == [0, 1]
    assert tree.depth.tolist() == [[0, 1, 1, 2, 2, 2]]
    assert tree.mask[0].int().tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 0, 1, 0, 0, 0],
        [1, 1, 0, 1, 0, 0],
        [1, 0, 1, 0, 1, 0],
        [1, 0, 1, 0, 0, 1],
    ]
    assert tree.max_depth == 2


@pytest.mark.parametrize(
    ("taken", "tokens", "path"),
    [
        ({0: 7}, [7], [0, 0, 0]),
        ({0: 0, 1: 7}, [0, 7], [0, 1, 1]),
        ({0: 0, 1: 1, 3: 8}, [0, 1, 8], [0, 1, 3]),
        ({0: 1, 2: 7}, [1, 7], [0, 2, 2]),
        # What another branch would have taken does not matter.
        ({0: 0, 1: 7, 2: 0}, [0, 7], [0, 1, 1]),
        ({0: 7, 1: 1, 2: 0}, [7], [0, 0, 0]),
    ],
)
def test_the_walk_goes_on_while_a_child_is_what_the_target_takes(
    taken: dict[int, int], tokens: list[int], path: list[int]
) -> None:
    target = torch.full((1, 6), 5)
    for node, token in taken.items():
        target[0, node] = token
    accepted = verify_tree_greedy(example(), target)
    assert accepted.tokens.tolist() == [tokens + [PADDING] * (3 - len(tokens))]
    assert accepted.path.tolist() == [path]
    assert accepted.num_accepted.tolist() == [len(tokens) - 1]
    assert accepted.accept_len.tolist() == [len(tokens)]


def test_a_walk_by_draws_takes_the_child_that_is_drawn() -> None:
    p = torch.zeros(1, 6, 10)
    p[0, 0, 0], p[0, 0, 1], p[0, 0, 4] = 0.5, 0.3, 0.2
    p[0, 1:, 3] = 1
    for u, tokens in [(0.0, [0, 3]), (0.49, [0, 3]), (0.51, [1, 3]), (0.79, [1, 3]), (0.81, [4])]:
        accepted = verify_tree_rejection(example(), p, torch.full((1, 6), u))
        assert accepted.tokens[0, : accepted.accept_len].tolist() == tokens


def test_a_parent_is_kept_before_a_child_that_is_as_likely() -> None:
    # A certain continuation scores as much as its parent; the tree has room for one of them only.
    certain = logs(1.0, 0.0, 0.0, 0.0)[None, None]
    steps = [expand(torch.zeros(1, 1), certain, topk=1)]
    for _ in range(3):
        steps.append(expand(steps[-1].scores, certain, topk=1))
    for rows in (2, 3, 4, 5):
        tree = build_tree(torch.tensor([9]), steps, rows)
        assert tree.parents.tolist() == [[0, *range(rows - 1)]]
        assert tree.depth.tolist() == [list(range(rows))]


def test_a_tree_of_one_branch_is_a_chain() -> None:
    generator = torch.Generator().manual_seed(0)
    scores, steps = torch.zeros(3, 1), []
    for _ in range(5):
        steps.append(expand(scores, torch.randn(3, 1, 20, generator=generator).log_softmax(-1), topk=1))
        scores = steps[-1].scores
    tree = build_tree(torch.tensor([1, 2, 3]), steps, 6)
    assert tree.mask.equal(torch.ones(6, 6, dtype=torch.bool).tril().expand(3, 6, 6))
    assert tree.tokens[:, 1:].equal(torch.cat([step.tokens for step in steps], 1))


def test_trees_that_cannot_be_are_refused() -> None:
    step = expand(torch.zeros(1, 1), logs(0.6, 0.4)[None, None], topk=2)
    for rows in (1, 4):
        with pytest.raises(ValueError, match=f"num_draft_tokens={rows}: give 2 to 3"):
            build_tree(torch.tensor([9]), [step], rows)
    for topk in (0, 3):
        with pytest.raises(ValueError, match=f"topk={topk} of 2 tokens"):
            expand(torch.zeros(1, 1), logs(0.6, 0.4)[None, None], topk)
    with pytest.raises(ValueError, match=r"target_tokens is \[1, 5\]: give \[1, 6\]"):
        verify_tree_greedy(example(), torch.zeros(1, 5, dtype=torch.int64))
