"""EAGLE's chain in the engine: its drafts, its cache and its text against plain code without cache or batch."""

import pytest
import torch

from refimpl.engine import EngineError
from refimpl.model.attention import DenseAttention, DenseCache
from refimpl.train.propose import drafter
from tests.unit.engine_drafts.watched import MIXED, Step, chooser, entries, features_of, on_cpu, run


def same_drafts(step: Step, knowing: bool = True) -> None:
    target, draft = on_cpu("eagle", knowing)
    tokens, features = features_of(target, draft, step.text, room=draft.config.num_steps + 1)
    with torch.no_grad():
        wanted = drafter(draft).propose(tokens, features, torch.tensor([step.seq_len]), chooser(step))
    assert step.seen["draft_tokens"].tolist() == wanted.tokens[0].tolist()
    if wanted.probs is not None:
        torch.testing.assert_close(step.seen["draft_probs"], wanted.probs[0], atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("knowing", [True, False])
def test_every_step_drafts_what_the_head_drafts_token_by_token_from_the_text_alone(knowing: bool) -> None:
    steps = run("eagle", knowing=knowing).steps
    assert len(steps) > 2 * len({step.req.rid for step in steps})
    assert not knowing or {step.new_seq_len - step.seq_len for step in steps} >= {1, 2}
    for step in steps:
        same_drafts(step, knowing)


def test_sampled_drafts_are_drawn_by_their_place_and_handed_on_with_what_they_were_drawn_from() -> None:
    for step in run("eagle", MIXED).steps:
        same_drafts(step)


def test_after_every_step_the_cache_is_that_of_the_head_over_the_committed_text() -> None:
    target, draft = on_cpu("eagle")
    for step in run("eagle").steps:
        text, n = step.text_after, step.new_seq_len
        tokens, features = features_of(target, draft, text)
        cache = DenseCache()
        with torch.no_grad():
            attention = DenseAttention(cache=cache)
            hidden = draft(tokens[:, 1:], draft.fuse(features)[:, :-1], torch.arange(n)[None], attention)
            k, v = entries(cache, 0)
        slots = step.seen["page_table"][:n].long()
        torch.testing.assert_close(step.seen["draft_k_0"][slots], k, atol=1e-4, rtol=1e-3)
        torch.testing.assert_close(step.seen["draft_v_0"][slots], v, atol=1e-4, rtol=1e-3)
        torch.testing.assert_close(step.seen["hidden_states"], hidden[0, -1], atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("draft_steps", [None, 2, 1])
def test_a_shorter_chain_writes_the_same_text(draft_steps: int | None) -> None:
    watched = run("eagle", draft_steps=draft_steps)
    assert watched.outputs == run("none").outputs
    k = draft_steps or 3
    assert all(step.seen["draft_tokens"].shape == (k,) for step in watched.steps)


def test_greedy_requests_among_sampled_ones_write_the_text_that_they_write_alone() -> None:
    assert run("eagle", MIXED).outputs[1] == run("none").outputs[1]


def test_forced_acceptance_decides_how_many_tokens_a_step_emits() -> None:
    assert all(set(req.accept_lens) == {2} for req in run("eagle", forced=2).reqs)


def test_more_steps_than_trained_are_refused() -> None:
    with pytest.raises(EngineError, match="draft_steps=4: the draft was trained for 3"):
        run("eagle", draft_steps=4)
