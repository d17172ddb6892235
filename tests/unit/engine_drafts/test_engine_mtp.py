"""Multi-layer EAGLE in the engine: its drafts, its caches and its text against plain code without cache or batch."""

import pytest
import torch

from refimpl.engine import EngineError
from refimpl.engine.decode_inputs import DecodeInputs
from refimpl.engine.workers.mtp import rows_around
from refimpl.model.attention import DenseAttention, DenseCache
from refimpl.train.propose import drafter
from tests.unit.engine_drafts.watched import MIXED, Step, chooser, entries, features_of, on_cpu, run


def same_drafts(step: Step) -> None:
    target, draft = on_cpu("mtp")
    tokens, features = features_of(target, draft, step.text, room=draft.config.num_steps + 1)
    with torch.no_grad():
        wanted = drafter(draft).propose(tokens, features, torch.tensor([step.seq_len]), chooser(step))
    assert step.seen["relayed_draft_tokens"].tolist() == wanted.tokens[0].tolist()
    if wanted.probs is not None:
        torch.testing.assert_close(step.seen["relayed_draft_probs"], wanted.probs[0], atol=1e-4, rtol=1e-3)


def test_every_step_verifies_what_the_heads_draft_from_the_text_alone() -> None:
    steps = run("mtp").steps
    assert len(steps) > 2 * len({step.req.rid for step in steps})
    assert {step.new_seq_len - step.seq_len for step in steps} >= {1, 2}
    for step in steps:
        same_drafts(step)


def test_sampled_drafts_are_drawn_by_their_place_and_relayed_with_what_they_were_drawn_from() -> None:
    for step in run("mtp", MIXED).steps:
        same_drafts(step)


def test_after_every_step_no_cache_keeps_anything_of_a_rejected_draft_but_where_the_next_step_writes() -> None:
    target, draft = on_cpu("mtp")
    for step in run("mtp").steps:
        tokens, features = features_of(target, draft, step.text_after)
        cache, hidden = DenseCache(), draft.fuse(features)
        for head in range(draft.config.num_steps):
            n = step.new_seq_len - head  # entries of which every token is known
            if n < 1:
                continue
            with torch.no_grad():
                attention = DenseAttention(cache=cache)
                hidden = draft(head, tokens[:, 1 + head :], hidden[:, :n], torch.arange(n)[None], attention)
                k, v = entries(cache, head)
            slots = step.seen["page_table"][:n].long()
            torch.testing.assert_close(step.seen[f"draft_k_{head}"][slots], k, atol=1e-4, rtol=1e-3)
            torch.testing.assert_close(step.seen[f"draft_v_{head}"][slots], v, atol=1e-4, rtol=1e-3)


def test_rows_before_the_beginning_of_a_text_take_no_slot_of_a_token() -> None:
    table = torch.arange(1, 21, dtype=torch.int32).view(2, 10)
    inputs = DecodeInputs(torch.tensor([1, 2]), torch.tensor([1, 5]), table)
    positions, metadata = rows_around(inputs, front=2, block=3)
    assert positions.tolist() == [[0, 0, 1, 2, 3], [3, 4, 5, 6, 7]]
    assert metadata.slots.view(2, 5).tolist() == [[0, 1, 2, 3, 4], [14, 15, 16, 17, 18]]
    assert metadata.kv_lens.tolist() == [4, 8]


@pytest.mark.parametrize("draft_steps", [None, 2, 1])
def test_fewer_heads_write_the_same_text(draft_steps: int | None) -> None:
    watched = run("mtp", draft_steps=draft_steps)
    assert watched.outputs == run("none").outputs
    k = draft_steps or 3
    assert all(step.seen["relayed_draft_tokens"].shape == (k,) for step in watched.steps)


def test_greedy_requests_among_sampled_ones_write_the_text_that_they_write_alone() -> None:
    assert run("mtp", MIXED).outputs[1] == run("none").outputs[1]


def test_forced_acceptance_decides_how_many_tokens_a_step_emits() -> None:
    assert all(set(req.accept_lens) == {2} for req in run("mtp", forced=2).reqs)


def test_a_tree_is_refused() -> None:
    with pytest.raises(EngineError, match="draft_topk=2: a multi-layer EAGLE drafts a chain"):
        run("mtp", draft_topk=2)
