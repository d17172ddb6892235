"""Verifying a tree: the one path from the root on which every token is what the target takes.

A tree of top-k children is not drawn, so each child is a point mass. The textbook tries siblings in turn: accept the
first with probability p(x), else remove it from p, renormalise, try the next. The probability to accept child c is
then p(c), whichever its turn: the renormalisation cancels. So one draw from p does it all: it is a child, and the walk
goes there, or it is none, and it is the token that comes out.

Source: Miao et al., "SpecInfer" (arXiv 2305.09781), for verification of trees; Li et al., EAGLE-2 (arXiv 2406.16858).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from refimpl.model.acceptance.accepted import PADDING, Accepted
from refimpl.model.acceptance.tree import DraftTree
from refimpl.model.sampling import Purpose, SamplingMode, SamplingTensors, draw, sample


@dataclass(frozen=True)
class AcceptedPath(Accepted):
    """The outcome of verifying a tree; ``tokens`` is ``[bs, max_depth+1]``.

    Args:
        path: ``[bs, max_depth+1]`` int64, the accepted nodes from the root on; behind the last one it is repeated, so
            that all are nodes. Their keys and values lie where the tree was written and must move together.
    """

    path: torch.Tensor


def verify_tree_greedy(tree: DraftTree, target_tokens: torch.Tensor) -> AcceptedPath:
    """Walks from the root as long as a child is the token that the target takes.

    Args:
        tree: what was verified.
        target_tokens: ``[bs, n]`` int64, what the target takes behind each node: its argmax, or a draw (below).

    Raises:
        ValueError: Shapes that do not fit.

    Order:
        Queues operators on the current stream; the host does not block.
    """
    if target_tokens.shape != tree.tokens.shape:
        raise ValueError(f"target_tokens is {list(target_tokens.shape)}: give {list(tree.tokens.shape)}, one a node")
    node = torch.arange(tree.tokens.shape[1], device=tree.tokens.device)
    fits = (tree.tokens == target_tokens.gather(1, tree.parents)) | (node == 0)
    accepted = (fits[:, None, :] | ~tree.mask).all(-1)
    # Children differ, so at most one of them fits: what is accepted is one path, and its deepest node the last.
    num_accepted, last = (tree.depth * accepted).max(-1)
    path = _path(accepted, tree, last)
    place = torch.arange(tree.max_depth + 1, device=tree.tokens.device)
    tokens = torch.where(place <= num_accepted[:, None], target_tokens.gather(1, path), PADDING)
    return AcceptedPath(num_accepted, num_accepted + 1, tokens, path)


def verify_tree_rejection(tree: DraftTree, p: torch.Tensor, u: torch.Tensor) -> AcceptedPath:
    """Walks from the root by draws from the target; what comes out is distributed as if it had written alone.

    Args:
        tree: what was verified; its shape must not depend on draws other than those of earlier tokens.
        p: ``[bs, n, V]`` float32, the target's distribution behind each node.
        u: ``[bs, n]`` float32 in [0, 1), none of which decided anything else. Nodes of one depth may share theirs, as
            only one of them is walked through.

    Raises:
        ValueError: Shapes that do not fit.

    Order:
        Queues operators on the current stream; the host does not block.
    """
    return verify_tree_greedy(tree, sample(p, u))


def verify_tree(
    tree: DraftTree, logits: torch.Tensor, seq_lens: torch.Tensor, tensors: SamplingTensors, mode: SamplingMode
) -> AcceptedPath:
    """Verifies a tree as its batch needs it, with draws of its own.

    For the same logits it emits the tokens that plain sampling emits, since both draw by the place of the token.

    Args:
        tree: what was verified.
        logits: ``[bs, n, V]``, the target's, behind each node.
        seq_lens: ``[bs]``, committed lengths before this step: the place of the anchor.
        tensors: of the ``bs`` requests.
        mode: at least what the requests need.

    Order:
        Queues operators on the current stream; the host does not block. ``seq_lens`` is read when they execute.
    """
    places = seq_lens[:, None] + tree.depth + 1
    return verify_tree_greedy(tree, draw(logits, tensors, mode, places, Purpose.TARGET).tokens)


def _path(accepted: torch.Tensor, tree: DraftTree, last: torch.Tensor) -> torch.Tensor:
    """``[bs, max_depth+1]``: each accepted node at its depth, the last one behind."""
    nodes = torch.arange(accepted.shape[1], device=accepted.device).expand_as(accepted)
    beyond = tree.max_depth + 1
    places = torch.where(accepted, tree.depth, beyond)
    return last[:, None].repeat(1, beyond + 1).scatter(1, places, nodes)[:, :beyond]
