"""EAGLE's trees in the engine: grown as plain Python grows them from the text alone, and lossless."""

from collections.abc import Sequence
from functools import cache

import pytest
import torch
from torch import Tensor

from refimpl.engine import EngineError
from refimpl.engine.workers.eagle_tree import sliding_tree_mask
from refimpl.model.acceptance import DraftTree
from refimpl.model.attention import DenseAttention, DenseCache
from refimpl.model.sampling import Drawn
from refimpl.train.propose import ChainDrafter
from tests.unit.engine_drafts.watched import MIXED, Step, entries, features_of, on_cpu, run, without_mask

TOPK, NODES, STEPS = 3, 8, 3
ALL_NODES = 1 + TOPK + (STEPS - 1) * TOPK**2
TREE = {"draft_topk": TOPK, "draft_tokens": NODES}
Path = tuple[int, ...]


def logprobs_behind(text: Sequence[int], path: Path, knowing: bool) -> Tensor:
    """``[V]``: the head's log-probabilities of what follows a path of drafts, the text computed anew."""
    target, draft = on_cpu("eagle", knowing)
    tokens, features = features_of(target, draft, text, room=len(path) + 2)
    drafter = ChainDrafter(draft)
    drafter.num_drafts = len(path) + 1
    given = iter([*path, 0])
    with torch.no_grad():
        proposal = drafter.propose(
            tokens, features, torch.tensor([len(text) - 1]), lambda *_: Drawn(torch.tensor([next(given)]), None)
        )
    return without_mask(proposal.logits[0, -1]).log_softmax(-1)


def grown(text: Sequence[int], knowing: bool, nodes: int) -> set[Path]:
    """The paths of an EAGLE-2 tree, its root the empty one."""
    scores: dict[Path, float] = {}
    frontier: dict[Path, float] = {(): 0.0}
    for _ in range(STEPS):
        children = {}
        for path, score in frontier.items():
            best = logprobs_behind(text, path, knowing).topk(TOPK)
            for token, logprob in zip(best.indices.tolist(), best.values.tolist(), strict=True):
                children[*path, token] = score + logprob
        scores |= children
        frontier = dict(sorted(children.items(), key=lambda item: -item[1])[:TOPK])
    return {(), *sorted(scores, key=lambda path: -scores[path])[: nodes - 1]}


def paths_of(step: Step) -> list[Path]:
    tokens, parents = step.seen["draft_tokens"].tolist(), step.seen["parents"].tolist()
    paths: list[Path] = [()]
    for token, parent in zip(tokens[1:], parents[1:], strict=True):
        paths.append((*paths[parent], token))
    return paths


@pytest.mark.parametrize(("knowing", "nodes"), [(True, NODES), (False, ALL_NODES)])
def test_every_step_grows_the_tree_that_plain_code_grows_from_the_text_alone(knowing: bool, nodes: int) -> None:
    steps = run("eagle", knowing=knowing, draft_topk=TOPK, draft_tokens=nodes).steps
    assert not knowing or {step.new_seq_len - step.seq_len for step in steps} >= {1, 2}
    for step in steps:
        assert set(paths_of(step)) == grown(step.text, knowing, nodes)
        assert step.seen["draft_tokens"][0] == step.text[-1]
        assert step.seen["depth"].tolist() == [len(path) for path in paths_of(step)]


def test_a_step_takes_the_way_through_its_tree_that_the_target_goes() -> None:
    for step in run("eagle", **TREE).steps:
        paths, came = set(paths_of(step)), step.text_after[step.seq_len + 1 :]
        accepted = [n for n in range(STEPS + 1) if n < len(came) + 1 and tuple(came[:n]) in paths]
        assert len(came) == max(accepted) + 1


def test_after_every_step_both_caches_are_those_of_the_committed_text() -> None:
    target, draft = on_cpu("eagle")
    watched = run("eagle", **TREE)
    assert any(step.seen["parents"].tolist() != [0, *range(NODES - 1)] for step in watched.steps)
    for step in watched.steps:
        text, n = step.text_after, step.new_seq_len
        tokens, features = features_of(target, draft, text)
        slots = step.seen["page_table"][:n].long()
        of_head, of_target = DenseCache(), DenseCache()
        with torch.no_grad():
            target(tokens[:, :n], torch.arange(n)[None], DenseAttention(cache=of_target))
            attention = DenseAttention(cache=of_head)
            hidden = draft(tokens[:, 1:], draft.fuse(features)[:, :-1], torch.arange(n)[None], attention)
        for name, cached, layers in (("draft", of_head, 1), ("target", of_target, target.config.num_hidden_layers)):
            for layer in range(layers):
                k, v = entries(cached, layer)
                torch.testing.assert_close(step.seen[f"{name}_k_{layer}"][slots], k, atol=1e-4, rtol=1e-3)
                torch.testing.assert_close(step.seen[f"{name}_v_{layer}"][slots], v, atol=1e-4, rtol=1e-3)
        torch.testing.assert_close(step.seen["hidden_states"], hidden[0, -1], atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("shape", [(3, 8, None), (4, 5, None), (2, 7, 2), (3, 4, 1)])
def test_trees_of_any_shape_write_the_text_of_the_target(shape: tuple[int, int, int | None]) -> None:
    topk, nodes, steps = shape
    watched = run("eagle", draft_topk=topk, draft_tokens=nodes, draft_steps=steps)
    assert watched.outputs == run("none").outputs


def test_drawn_from_a_tree_comes_the_very_text_that_plain_decoding_draws() -> None:
    assert run("eagle", MIXED, **TREE).outputs == run("none", MIXED).outputs


def test_in_sliding_layers_a_node_sees_the_window_of_its_own_position() -> None:
    assert run("eagle", window=5, **TREE).outputs == run("none", window=5).outputs


@cache
def fork() -> DraftTree:
    """The root, two children, and a child of the second."""
    parents = torch.tensor([[0, 0, 0, 2]])
    mask = torch.tensor([[[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]]).bool()
    return DraftTree(torch.tensor([[5, 6, 7, 8]]), parents, torch.tensor([[0, 1, 1, 2]]), mask, 2)


@pytest.mark.parametrize("window", [1, 2, 3, 6])
def test_the_mask_of_a_sliding_layer_counts_back_from_a_nodes_depth(window: int) -> None:
    seen, tree = sliding_tree_mask(fork(), window)[0], fork()
    depth, on_path = tree.depth[0].tolist(), tree.mask[0]
    committed = range(-window - 4, 0)
    for node in range(4):
        wanted = [place > depth[node] - window for place in committed]
        wanted += [bool(on_path[node, other]) and depth[other] > depth[node] - window for other in range(4)]
        assert seen[node].tolist() == wanted
        assert not seen[node, 0] or window + depth[node] == 0


def test_a_tree_that_its_steps_cannot_fill_is_refused() -> None:
    with pytest.raises(EngineError, match="draft_tokens=16: 2 steps of draft_topk=2 find 6 tokens, use 2 to 7"):
        run("eagle", draft_topk=2, draft_steps=2)


def test_forced_acceptance_is_refused() -> None:
    with pytest.raises(EngineError, match="forced acceptance is for chains"):
        run("eagle", forced=2, **TREE)
