"""A draft that branches (EAGLE-2): the likeliest nodes that the draft model found, wherever they are.

Each step takes the ``topk`` likeliest continuations of every node of its frontier; the best ``topk`` of all these are
the next frontier. At the end the best of all nodes ever seen are verified together. "Likeliest" is the sum of
log-probabilities on the way from the root, so the tree grows deep where the draft is sure and wide where it is not.

Source: Li et al., "EAGLE-2: Faster Inference of Language Models with Dynamic Draft Trees" (arXiv 2406.16858).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch.nn import functional as F


@dataclass(frozen=True)
class Expansion:
    """One step of growth: the continuations of a frontier of ``f`` nodes, and the ``k`` of them to go on from.

    Args:
        candidate_tokens: ``[bs, f*k]`` int64, those of the first frontier node first.
        candidate_scores: ``[bs, f*k]`` float32, log-probability from the root; at most the parent's.
        chosen: ``[bs, k]`` int64, which candidates are the next frontier.
        topk: ``k``.
    """

    candidate_tokens: torch.Tensor
    candidate_scores: torch.Tensor
    chosen: torch.Tensor
    topk: int

    @property
    def tokens(self) -> torch.Tensor:
        """``[bs, k]`` int64, the next frontier."""
        return self.candidate_tokens.gather(1, self.chosen)

    @property
    def scores(self) -> torch.Tensor:
        """``[bs, k]`` float32, its log-probabilities from the root."""
        return self.candidate_scores.gather(1, self.chosen)

    @property
    def parents(self) -> torch.Tensor:
        """``[bs, k]`` int64, whose child each is, as a place in the frontier before; it continues its state."""
        return self.chosen // self.topk


@dataclass(frozen=True)
class DraftTree:
    """``n`` nodes to verify; node 0 is the root, the anchor, and parents stand before their children.

    Args:
        tokens: ``[bs, n]`` int64; children of one node differ.
        parents: ``[bs, n]`` int64; the root's is the root.
        depth: ``[bs, n]`` int64; a node's position is the anchor's plus this.
        mask: ``[bs, n, n]`` bool; ``mask[b, i, j]`` where ``j`` is ``i`` or above it: what ``i`` may attend to.
        max_depth: drafts on a path, at most.
    """

    tokens: torch.Tensor
    parents: torch.Tensor
    depth: torch.Tensor
    mask: torch.Tensor
    max_depth: int


def expand(scores: torch.Tensor, logprobs: torch.Tensor, topk: int) -> Expansion:
    """Continues every node of a frontier with its ``topk`` likeliest tokens.

    Args:
        scores: ``[bs, f]`` float32, log-probabilities from the root; for the root ``[bs, 1]`` zeros.
        logprobs: ``[bs, f, V]`` float32, at most 0: the draft's log-probabilities behind each node.
        topk: continuations of a node, and nodes of the next frontier.

    Raises:
        ValueError: More continuations than the vocabulary has tokens.

    Order:
        Queues operators on the current stream; the host does not block.
    """
    if not 1 <= topk <= logprobs.shape[-1]:
        raise ValueError(f"topk={topk} of {logprobs.shape[-1]} tokens: give 1 to as many as there are")
    best = logprobs.topk(topk, dim=-1)
    candidate_scores = (scores[..., None] + best.values).flatten(1)
    chosen = candidate_scores.topk(topk, dim=-1).indices
    return Expansion(best.indices.flatten(1), candidate_scores, chosen, topk)


def build_tree(anchors: torch.Tensor, expansions: Sequence[Expansion], num_draft_tokens: int) -> DraftTree:
    """The root and the ``num_draft_tokens - 1`` best candidates of all steps.

    A candidate's parent is always among them: it scores at least as much, and of equals the earlier step's goes first.

    Args:
        anchors: ``[bs]`` int64, the token behind the committed ones.
        expansions: of the root, of its frontier, and so on, in order.
        num_draft_tokens: ``n``: rows to verify, the root's included.

    Raises:
        ValueError: Fewer candidates than rows, or no row beside the root.

    Order:
        Queues operators on the current stream; the host does not block.
    """
    scores = torch.cat([step.candidate_scores for step in expansions], dim=1)
    if not 2 <= num_draft_tokens <= scores.shape[1] + 1:
        raise ValueError(f"num_draft_tokens={num_draft_tokens}: give 2 to {scores.shape[1] + 1}, as the steps found")
    best = scores.sort(dim=-1, descending=True, stable=True).indices[:, : num_draft_tokens - 1]
    # In order of the steps, so that a parent stands before its children.
    picked = best.sort(-1).values
    parents = F.pad(
        _places(picked, scores.shape[1]).gather(1, _parent_candidates(expansions).gather(1, picked)), (1, 0)
    )
    candidates = torch.cat([step.candidate_tokens for step in expansions], dim=1)
    tokens = torch.cat([anchors[:, None], candidates.gather(1, picked)], dim=1)
    mask = _ancestors(parents, len(expansions))
    return DraftTree(tokens, parents, mask.sum(-1) - 1, mask, len(expansions))


def _parent_candidates(expansions: Sequence[Expansion]) -> torch.Tensor:
    """``[bs, C]``: the parent of each candidate, numbered over all steps from 1; 0 is the root."""
    first = expansions[0]
    parents = [torch.zeros_like(first.candidate_tokens)]
    offset = 1
    for step, following in pairwise(expansions):
        parents.append((step.chosen + offset).repeat_interleave(following.topk, dim=1))
        offset += step.candidate_tokens.shape[1]
    return torch.cat(parents, dim=1)


def _places(picked: torch.Tensor, num_candidates: int) -> torch.Tensor:
    """``[bs, C+1]``: the node that each candidate became; the root, at 0, is node 0."""
    nodes = torch.arange(1, picked.shape[1] + 1, device=picked.device).expand_as(picked)
    return picked.new_zeros(picked.shape[0], num_candidates + 1).scatter(1, picked + 1, nodes)


def _ancestors(parents: torch.Tensor, max_depth: int) -> torch.Tensor:
    """``[bs, n, n]`` bool: who is above whom, each node above itself."""
    itself = torch.arange(parents.shape[1], device=parents.device)
    reaches = ((parents[..., None] == itself) | (itself[:, None] == itself)).to(torch.float32)
    # Squaring doubles the generations that are reached. Entries count paths, small whole numbers, and only 0 matters.
    for _ in range((max_depth - 1).bit_length()):
        reaches = reaches @ reaches
    return reaches > 0
