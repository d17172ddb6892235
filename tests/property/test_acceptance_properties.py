"""Whatever is drafted, the tensors say what a loop over Python lists says."""

from dataclasses import dataclass, field

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.model.acceptance import (
    PADDING,
    DraftTree,
    Expansion,
    build_tree,
    expand,
    verify_greedy,
    verify_rejection,
    verify_tree_greedy,
)

FEW_TOKENS = 3


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]]]:
    batch, k = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    tokens = st.integers(0, FEW_TOKENS - 1)

    def rows(width: int) -> list[list[int]]:
        return draw(st.lists(st.lists(tokens, min_size=width, max_size=width), min_size=batch, max_size=batch))

    return rows(k), rows(k + 1)


def emitted(drafts: list[int], target: list[int]) -> list[int]:
    """What greedy verification emits, token by token."""
    out = []
    for row, token in enumerate(target):
        out.append(token)
        if row == len(drafts) or drafts[row] != token:
            break
    return out


@given(chains())
def test_greedy_verification_emits_what_a_loop_emits(case: tuple[list[list[int]], list[list[int]]]) -> None:
    drafts, target = case
    accepted = verify_greedy(torch.tensor(drafts), torch.tensor(target))
    wanted = [emitted(*row) for row in zip(drafts, target, strict=True)]
    assert accepted.accept_len.tolist() == [len(out) for out in wanted]
    assert accepted.tokens.tolist() == [out + [PADDING] * (len(target[0]) - len(out)) for out in wanted]


@given(chains(), st.booleans(), st.floats(0, 1, exclude_max=True, width=16))
def test_rejection_at_temperature_0_is_greedy(
    case: tuple[list[list[int]], list[list[int]]], drawn: bool, u: float
) -> None:
    drafts, target = (torch.tensor(rows) for rows in case)
    q, p = (torch.nn.functional.one_hot(rows, FEW_TOKENS).float() for rows in (drafts, target))
    draws = torch.full(target.shape, u)
    rejected = verify_rejection(drafts, q if drawn else None, p, draws[:, 1:], draws[:, 0])
    assert rejected.tokens.equal(verify_greedy(drafts, target).tokens)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_a_rejected_draft_is_followed_by_a_token_that_the_target_may_write(seed: int, k: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    p, q = (torch.rand(16, rows, 6, generator=generator) for rows in (k + 1, k))
    p, q = (rows * (torch.rand(rows.shape, generator=generator) < 0.5) + 1e-6 * torch.eye(6)[0] for rows in (p, q))
    p, q = (rows / rows.sum(-1, keepdim=True) for rows in (p, q))
    drafts = q.argmax(-1)
    draws = torch.rand(16, k + 1, generator=generator)
    accepted = verify_rejection(drafts, q, p, draws[:, 1:], draws[:, 0])
    for row, tokens in enumerate(accepted.tokens.tolist()):
        length = int(accepted.accept_len[row])
        assert tokens[: length - 1] == drafts[row, : length - 1].tolist()
        assert all(p[row, place, token] > 0 for place, token in enumerate(tokens[:length]))
        assert tokens[length:] == [PADDING] * (k + 1 - length)


@dataclass
class Node:
    token: int
    score: float
    above: tuple[int, ...]
    below: list["Node"] = field(default_factory=list)


def grown_by_hand(draft: "Draft", topk: int, steps: int) -> list[Node]:
    """EAGLE-2 with lists: every node that was looked at, in order; `above` are the tokens on the way to it."""
    frontier, seen = [Node(-1, 0.0, ())], []
    for _ in range(steps):
        found = []
        for node in frontier:
            logprobs = draft.logprobs((*node.above, node.token))
            for token in logprobs.topk(topk).indices.tolist():
                score = float(torch.tensor(node.score) + logprobs[token])
                found.append(Node(token, score, (*node.above, node.token)))
        seen += found
        frontier = sorted(found, key=lambda node: -node.score)[:topk]
    return seen


@dataclass(frozen=True)
class Draft:
    """A draft model whose next token depends on all tokens since the anchor."""

    seed: int
    vocabulary: int

    def logprobs(self, path: tuple[int, ...]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((self.seed, path)) % 2**63)
        return torch.randn(self.vocabulary, generator=generator).mul(2).log_softmax(-1)


def grown(draft: Draft, topk: int, steps: int) -> list[Expansion]:
    scores, paths, expansions = torch.zeros(1, 1), [(-1,)], []
    for _ in range(steps):
        step = expand(scores, torch.stack([draft.logprobs(path) for path in paths])[None], topk)
        chosen = zip(step.parents[0].tolist(), step.tokens[0].tolist(), strict=True)
        paths, scores = [(*paths[parent], token) for parent, token in chosen], step.scores
        expansions.append(step)
    return expansions


def paths_of(tree: DraftTree) -> list[tuple[int, ...]]:
    """The tokens on the way to each node, the root's left out."""
    paths: list[tuple[int, ...]] = [()]
    for node in range(1, tree.tokens.shape[1]):
        paths.append((*paths[int(tree.parents[0, node])], int(tree.tokens[0, node])))
    return paths


trees = st.tuples(st.integers(0, 2**20), st.integers(1, 4), st.integers(1, 4), st.floats(0, 1))


def tree_of(case: tuple[int, int, int, float]) -> tuple[Draft, DraftTree]:
    seed, topk, steps, share = case
    draft = Draft(seed, vocabulary=5)
    expansions = grown(draft, topk, steps)
    candidates = sum(step.candidate_tokens.shape[1] for step in expansions)
    return draft, build_tree(torch.tensor([7]), expansions, 2 + round(share * (candidates - 1)))


@settings(max_examples=40, deadline=None)
@given(trees)
def test_a_tree_holds_the_best_nodes_that_a_loop_finds(case: tuple[int, int, int, float]) -> None:
    draft, tree = tree_of(case)
    rows = tree.tokens.shape[1]
    best = sorted(grown_by_hand(draft, case[1], case[2]), key=lambda node: -node.score)[: rows - 1]
    wanted = {(*node.above[1:], node.token) for node in best}
    paths = paths_of(tree)
    assert len(set(paths)) == rows
    assert set(paths[1:]) == wanted


@settings(max_examples=40, deadline=None)
@given(trees)
def test_depths_and_masks_follow_from_parents(case: tuple[int, int, int, float]) -> None:
    _, tree = tree_of(case)
    for node, path in enumerate(paths_of(tree)):
        above, at = {node}, node
        while at:
            at = int(tree.parents[0, at])
            above.add(at)
        assert int(tree.depth[0, node]) == len(path)
        assert set(tree.mask[0, node].nonzero().flatten().tolist()) == above


@settings(max_examples=60, deadline=None)
@given(trees, st.data())
def test_a_walk_through_a_tree_is_the_walk_of_a_loop(case: tuple[int, int, int, float], data: st.DataObject) -> None:
    _, tree = tree_of(case)
    rows = tree.tokens.shape[1]
    target = data.draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
    children = {(int(tree.parents[0, n]), int(tree.tokens[0, n])): n for n in range(1, rows)}
    path = [0]
    while (path[-1], target[path[-1]]) in children:
        path.append(children[path[-1], target[path[-1]]])
    accepted = verify_tree_greedy(tree, torch.tensor([target]))
    assert accepted.accept_len.item() == len(path)
    assert accepted.path[0].tolist() == path + path[-1:] * (tree.max_depth + 1 - len(path))
    wanted = [target[node] for node in path]
    assert accepted.tokens[0].tolist() == wanted + [PADDING] * (tree.max_depth + 1 - len(path))
