"""EAGLE-2: the head grows a tree of drafts, and the target verifies all of it in one forward.

Source: sgl-project/sglang, ``speculative/eagle_worker_v2.py`` with ``topk > 1``; arXiv 2406.16858.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from refimpl.engine.config import EngineConfig
from refimpl.engine.decode_inputs import DecodeInputs, Rows, rows_behind
from refimpl.engine.errors import EngineError
from refimpl.engine.future_map import Shapes
from refimpl.engine.graph_runner import Outputs
from refimpl.engine.pools import KVPool
from refimpl.engine.workers.base import Resources
from refimpl.engine.workers.draft_common import draft_steps, take_rows, verify_outputs
from refimpl.engine.workers.eagle import EagleWorker
from refimpl.model.acceptance import DraftTree, Expansion, build_tree, expand, verify_tree
from refimpl.model.attention import PagedAttention
from refimpl.model.eagle import Eagle3
from refimpl.model.sampling import SamplingMode


class EagleTreeWorker(EagleWorker):
    """An EAGLE head that drafts a tree: ``topk`` nodes a step, of which the best are verified.

    The head runs over a frontier of ``topk`` nodes a step, whose entries are scratch behind the committed ones, step
    after step. A node sees the committed entries and, in the scratch, its own ancestors: two nodes of a step stand at
    one position and know nothing of each other. So it is with the nodes in the target's verify. What is accepted is one
    path, scattered over the rows of the tree, and moves to the front of them; the rest goes on as with a chain.

    Args:
        resources: the target and its memory.
        draft: the head.

    Raises:
        EngineError: a tree that cannot be grown, or forced acceptance, which is for chains.
    """

    def __init__(self, resources: Resources, draft: Eagle3) -> None:
        if resources.forced is not None:
            raise EngineError(f"draft_topk={resources.config.draft_topk}: forced acceptance is for chains, use 1")
        self.topk, self.num_nodes = resources.config.draft_topk, resources.config.draft_tokens
        super().__init__(resources, draft)
        self.alloc_len = tree_alloc_len(draft, resources.config)

    def _drafted_shapes(self) -> Shapes:
        nodes = ((self.num_nodes,), torch.int64)
        mask = ((self.num_nodes, self.num_nodes), torch.bool)
        return {"draft_tokens": nodes, "parents": nodes, "depth": nodes, "mask": mask}

    def _draft(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        """Grows the tree a frontier at a time. No draw decides its shape, so a verify by draws is lossless."""
        bs = inputs.batch_size
        hidden = inputs.tokens["hidden_states"][:, None]
        scores = torch.zeros(bs, 1, device=hidden.device)
        ancestors = torch.zeros(bs, 1, 0, dtype=torch.bool, device=hidden.device)
        expansions: list[Expansion] = []
        for step in range(self.num_steps):
            if step > 0:
                frontier = expansions[-1]
                ancestors = self._with_themselves(take_rows(ancestors, frontier.parents))
                hidden = self._run_frontier(inputs, step, frontier, take_rows(hidden, frontier.parents), ancestors)
                scores = frontier.scores
            logits = self.target.logits_without_mask(self.draft.logits(hidden))
            expansions.append(expand(scores, logits.log_softmax(-1, dtype=torch.float32), self.topk))
        tree = build_tree(inputs.tokens["bonus_tokens"], expansions, self.num_nodes)
        return {"draft_tokens": tree.tokens, "parents": tree.parents, "depth": tree.depth, "mask": tree.mask}

    def _run_frontier(
        self, inputs: DecodeInputs, step: int, frontier: Expansion, hidden: torch.Tensor, ancestors: torch.Tensor
    ) -> torch.Tensor:
        """The head over the nodes of a step, ``[bs, topk, d]``; all of them stand at one position."""
        scratch = inputs.seq_lens + (step - 1) * self.topk
        rows = rows_behind(replace(inputs, seq_lens=scratch), self.topk, tail_mask=ancestors)
        positions = (inputs.seq_lens + step - 1)[:, None].expand(-1, self.topk)
        attention = PagedAttention(self.draft_pool.k, self.draft_pool.v, rows.full)
        after: torch.Tensor = self.draft(
            frontier.tokens.view(-1), hidden.flatten(0, 1), positions.reshape(-1), attention
        )
        return after.view_as(hidden)

    def _with_themselves(self, ancestors: torch.Tensor) -> torch.Tensor:
        """What the nodes of a step see of the scratch: what their parents saw, and their own entries."""
        itself = torch.arange(self.topk, device=ancestors.device)
        own = (itself[:, None] == itself).expand(ancestors.shape[0], -1, -1)
        return torch.cat([ancestors, own], dim=2)

    def _verify(self, inputs: DecodeInputs, mode: SamplingMode) -> Outputs:
        """The target over the tree, and the K and V of the accepted path to where those of a chain would be."""
        drafted = self._drafted_for(inputs, mode)
        mask = drafted["mask"]
        if self.plan is not None:
            # Each node sees itself; in inputs that were never filled, such as padding, none would see anything.
            mask = mask | torch.eye(self.num_nodes, dtype=torch.bool, device=mask.device)
        tree = DraftTree(drafted["draft_tokens"], drafted["parents"], drafted["depth"], mask, self.num_steps)
        logits, features = self.target.rows(tree.tokens, tree_rows(inputs, tree))
        tensors = self.resources.sampling.rows(inputs.req_pool_indices)
        accepted = verify_tree(tree, logits, inputs.seq_lens, tensors, mode)
        self._move(inputs, accepted.path)
        assert features is not None, "the draft names its feature layers"
        return verify_outputs(accepted, take_rows(features, accepted.path), inputs)

    def _move(self, inputs: DecodeInputs, path: torch.Tensor) -> None:
        """Node ``path[:, j]`` goes to place ``j``. What lies behind the accepted ones is written again before it is
        read."""
        sources = inputs.seq_lens[:, None] + path
        targets = inputs.seq_lens[:, None] + torch.arange(path.shape[1], device=path.device)

        def slots(table: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return table.gather(1, sources).view(-1), table.gather(1, targets).view(-1)

        pool = self.resources.kv_pool
        if isinstance(pool, KVPool):
            pool.move(*slots(inputs.page_table))
        else:
            assert inputs.swa_page_table is not None, "a pool for sliding layers comes with its map"
            # Safe because: the twins are those of the snapshot; schedule may write full_to_swa by now.
            pool.move(*slots(inputs.page_table), *slots(inputs.swa_page_table))


def tree_rows(inputs: DecodeInputs, tree: DraftTree) -> Rows:
    """Where the nodes of a tree go, and what each sees: the committed tokens, its ancestors, itself.

    Args:
        inputs: the snapshot.
        tree: ``n`` nodes; node ``j`` takes the slot ``j`` behind the committed ones, and the position of its depth.
    """
    rows = rows_behind(inputs, tree.tokens.shape[1], tail_mask=tree.mask)
    sliding = rows.sliding
    if sliding is not None:
        assert sliding.window is not None, "sliding layers have a window"
        # A window counts back from a query's kv index, but a node stands at its depth, which is less: the window is
        # made wide enough for all of them, and the mask says what each of them sees.
        tail_mask = sliding_tree_mask(tree, sliding.window)
        sliding = replace(sliding, tail_mask=tail_mask, window=sliding.window + tree.tokens.shape[1])
    return Rows(inputs.seq_lens[:, None] + tree.depth, rows.full, sliding)


def sliding_tree_mask(tree: DraftTree, window: int) -> torch.Tensor:
    """What nodes see in a sliding layer: ``[bs, n, window + 2 * n]`` bool over the last kv entries.

    All entries before those lie further back than ``window + n``.

    Args:
        tree: ``n`` nodes, the last ``n`` entries.
        window: a node at position ``p`` sees positions above ``p - window``.
    """
    bs, nodes = tree.tokens.shape
    committed = torch.arange(-window - nodes, 0, device=tree.depth.device).expand(bs, -1)
    place = torch.cat([committed, tree.depth], dim=1)
    on_path = torch.nn.functional.pad(tree.mask, (window + nodes, 0), value=True)
    return on_path & (place[:, None, :] > tree.depth[:, :, None] - window)


def tree_alloc_len(draft: Eagle3, config: EngineConfig) -> int:
    """Slots behind the committed length: of the rows that are verified, of the scratch of the draft, or of a path.

    Raises:
        EngineError: a tree of fewer nodes than two, or of more than its steps find.
    """
    steps, topk = draft_steps(draft.config.num_steps, config), config.draft_topk
    candidates = topk + (steps - 1) * topk**2
    if not 2 <= config.draft_tokens <= candidates + 1:
        raise EngineError(
            f"draft_tokens={config.draft_tokens}: {steps} steps of draft_topk={topk} find {candidates} tokens, "
            f"use 2 to {candidates + 1}"
        )
    return max(config.draft_tokens, (steps - 1) * topk, steps + 1)
