"""Acceptance as pure functions of tensors: fixed shapes, no generator, nothing that blocks the host."""

from refimpl.model.acceptance.accepted import PADDING, Accepted, last_accepted
from refimpl.model.acceptance.chain import verify_chain, verify_greedy, verify_rejection
from refimpl.model.acceptance.forced import ForcedAcceptance
from refimpl.model.acceptance.tree import DraftTree, Expansion, build_tree, expand
from refimpl.model.acceptance.tree_verify import AcceptedPath, verify_tree, verify_tree_greedy, verify_tree_rejection

__all__ = [
    "PADDING",
    "Accepted",
    "AcceptedPath",
    "DraftTree",
    "Expansion",
    "ForcedAcceptance",
    "build_tree",
    "expand",
    "last_accepted",
    "verify_chain",
    "verify_greedy",
    "verify_rejection",
    "verify_tree",
    "verify_tree_greedy",
    "verify_tree_rejection",
]
