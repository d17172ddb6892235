"""What comes out of speculative decoding is distributed as the target alone would write it.

A target and a draft of 8 tokens, whose next token depends on the last two. 200,000 requests decode three tokens, in as
many steps as they need; the 512 outcomes are counted against their exact probabilities. Each way of getting it wrong
is seen to be wrong by the same count. Where 50,000 requests tell right from wrong, no more are run.
"""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from refimpl.model.acceptance import (
    Accepted,
    DraftTree,
    build_tree,
    expand,
    verify_chain,
    verify_rejection,
    verify_tree,
    verify_tree_greedy,
    verify_tree_rejection,
)
from refimpl.model.sampling import Purpose, SamplingMode, SamplingTensors, draw, probabilities, sample, uniform
from tests.oracle.chi_square import chi_square

V = 8
TOKENS = 3
REQUESTS, FEWER = 200_000, 50_000
PROMPT = 4
LONGEST = 5
EXACT, WRONG = 1e-3, 1e-9

Step = Callable[[torch.Tensor, torch.Tensor], Accepted]


def table(seed: int, sharpness: float) -> torch.Tensor:
    """Logits of the next token by the last two."""
    return sharpness * torch.randn(V, V, V, generator=torch.Generator().manual_seed(seed))


TARGET = table(1, 0.8)
DRAFT = TARGET + table(2, 0.6)


def params(requests: int, temperature: float = 1.0, top_k: int = 0) -> SamplingTensors:
    return SamplingTensors(
        torch.full((requests,), temperature),
        torch.full((requests,), top_k, dtype=torch.int32),
        torch.ones(requests),
        torch.arange(requests),
    )


def joint(logits: torch.Tensor) -> torch.Tensor:
    """The exact probability of each three tokens behind (0, 0)."""
    p = logits.double().softmax(-1)
    return p[0, 0][:, None, None] * p[0][:, :, None] * p


def decode(step: Step, requests: int) -> torch.Tensor:
    """How often each three tokens came out; `step` gets the last two tokens and the place of the last one."""
    text = torch.zeros(requests, PROMPT + LONGEST * TOKENS, dtype=torch.int64)
    seq_lens = torch.full((requests,), PROMPT - 1)
    for _ in range(TOKENS):
        last_two = text.gather(1, torch.stack([seq_lens - 1, seq_lens], 1))
        accepted = step(last_two, seq_lens)
        places = seq_lens[:, None] + 1 + torch.arange(accepted.tokens.shape[1])
        text.scatter_(1, places, accepted.tokens.clamp(min=0))
        seq_lens = seq_lens + accepted.accept_len
    first, second, third = text[:, PROMPT : PROMPT + TOKENS].unbind(1)
    return torch.bincount((first * V + second) * V + third, minlength=V**TOKENS)


def draft_chain(
    k: int, sampling: SamplingTensors, mode: SamplingMode, last_two: torch.Tensor, seq_lens: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The last two tokens and `k` drafts behind them; what the drafts were drawn from."""
    tokens, q = last_two, []
    for step in range(k):
        drawn = draw(DRAFT[tokens[:, -2], tokens[:, -1]], sampling, mode, seq_lens + 1 + step, Purpose.DRAFT)
        assert drawn.probs is not None
        tokens, q = torch.cat([tokens, drawn.tokens[:, None]], 1), [*q, drawn.probs]
    return tokens, torch.stack(q, 1)


def speculate(k: int, sampling: SamplingTensors, mode: SamplingMode = SamplingMode.SAMPLED) -> torch.Tensor:
    """Decodes with a drawn chain of `k` drafts a step."""

    def step(last_two: torch.Tensor, seq_lens: torch.Tensor) -> Accepted:
        tokens, q = draft_chain(k, sampling, mode, last_two, seq_lens)
        logits = TARGET[tokens[:, :-1], tokens[:, 1:]]
        return verify_chain(tokens[:, 2:], q, logits, seq_lens, sampling, mode)

    return decode(step, len(sampling.seed))


@pytest.mark.parametrize(("k", "requests"), [(1, FEWER), (2, REQUESTS), (4, FEWER)])
def test_a_chain_writes_what_the_target_writes(k: int, requests: int) -> None:
    assert chi_square(speculate(k, params(requests)), joint(TARGET)) > EXACT


def test_a_chain_writes_what_the_target_writes_at_another_temperature() -> None:
    counts = speculate(3, params(FEWER, temperature=0.6))
    assert chi_square(counts, joint(TARGET / 0.6)) > EXACT
    assert chi_square(counts, joint(TARGET)) < WRONG


def test_a_chain_writes_what_the_filtered_target_writes() -> None:
    kept = TARGET.topk(4, dim=-1)
    filtered = torch.full_like(TARGET, -torch.inf).scatter(-1, kept.indices, kept.values)
    counts = speculate(2, params(FEWER, top_k=4), SamplingMode.FILTERED)
    assert chi_square(counts, joint(filtered)) > EXACT


def test_a_chain_that_was_not_drawn_writes_what_the_target_writes() -> None:
    sampling = params(REQUESTS)

    def step(last_two: torch.Tensor, seq_lens: torch.Tensor) -> Accepted:
        tokens = last_two
        for _ in range(2):
            tokens = torch.cat([tokens, DRAFT[tokens[:, -2], tokens[:, -1]].argmax(-1, keepdim=True)], 1)
        logits = TARGET[tokens[:, :-1], tokens[:, 1:]]
        return verify_chain(tokens[:, 2:], None, logits, seq_lens, sampling, SamplingMode.SAMPLED)

    assert chi_square(decode(step, len(sampling.seed)), joint(TARGET)) > EXACT


def test_a_draft_is_accepted_as_often_as_p_and_q_overlap() -> None:
    sampling, last_two = params(REQUESTS), torch.zeros(REQUESTS, 2, dtype=torch.int64)
    seq_lens = torch.full((REQUESTS,), PROMPT)
    tokens, q = draft_chain(1, sampling, SamplingMode.SAMPLED, last_two, seq_lens)
    logits = TARGET[tokens[:, :-1], tokens[:, 1:]]
    accepted = verify_chain(tokens[:, 2:], q, logits, seq_lens, sampling, SamplingMode.SAMPLED)
    overlap = torch.minimum(TARGET[0, 0].softmax(-1), DRAFT[0, 0].softmax(-1)).sum()
    assert accepted.num_accepted.double().mean().item() == pytest.approx(overlap.item(), abs=0.005)


Verify = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], Accepted]


def final_from_p(tokens: torch.Tensor, q: torch.Tensor, p: torch.Tensor, u: torch.Tensor, v: torch.Tensor) -> Accepted:
    """Draws behind a rejection from all of p, as if nothing had been taken from it."""
    accepted = verify_rejection(tokens, q, p, u, v)
    behind = accepted.num_accepted[:, None]
    last = sample(p.gather(1, behind[..., None].expand(-1, -1, V)).squeeze(1), v)
    return Accepted(accepted.num_accepted, accepted.accept_len, accepted.tokens.scatter(1, behind, last[:, None]))


MISTAKES: dict[str, Verify] = {
    "draws from p behind a rejection": final_from_p,
    "takes q for even": lambda t, q, p, u, v: verify_rejection(t, torch.full_like(q, 1 / V), p, u, v),
    "computes q again, at another temperature": lambda t, q, p, u, v: verify_rejection(
        t, F.normalize(q**0.8, p=1, dim=-1), p, u, v
    ),
    "uses one draw twice": lambda t, q, p, u, v: verify_rejection(t, q, p, u, u[:, 0]),
    "draws all of a step at once": lambda t, q, p, u, v: verify_rejection(t, q, p, u[:, :1].expand_as(u), v),
}


def with_verify(verify: Verify, draws: Purpose = Purpose.ACCEPT) -> torch.Tensor:
    """Decodes with chains of two, verified by `verify` with the draws of `verify_chain`, or with others."""
    sampling = params(FEWER)

    def step(last_two: torch.Tensor, seq_lens: torch.Tensor) -> Accepted:
        tokens, q = draft_chain(2, sampling, SamplingMode.SAMPLED, last_two, seq_lens)
        p = probabilities(TARGET[tokens[:, :-1], tokens[:, 1:]], sampling, SamplingMode.SAMPLED)
        u = uniform(sampling.seed, seq_lens[:, None] + torch.arange(1, 3), draws)
        return verify(tokens[:, 2:], q, p, u, uniform(sampling.seed, seq_lens, Purpose.FINAL))

    return decode(step, len(sampling.seed))


def test_the_harness_of_mistakes_finds_none_where_there_is_none() -> None:
    assert chi_square(with_verify(verify_rejection), joint(TARGET)) > EXACT


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_verifying_a_chain_shows(mistake: str) -> None:
    assert chi_square(with_verify(MISTAKES[mistake]), joint(TARGET)) < WRONG


def test_a_draft_that_shares_its_draw_with_its_acceptance_shows() -> None:
    assert chi_square(with_verify(verify_rejection, Purpose.DRAFT), joint(TARGET)) < WRONG


def test_a_draft_verified_as_if_it_were_not_drawn_is_right_too() -> None:
    assert chi_square(with_verify(lambda t, q, p, u, v: verify_rejection(t, None, p, u, v)), joint(TARGET)) > EXACT


def grow(last_two: torch.Tensor) -> tuple[DraftTree, torch.Tensor]:
    """A tree of five nodes behind the last token, and the target's logits behind each of them."""
    frontier, before, scores, expansions = last_two[:, 1:], last_two[:, :1], torch.zeros(len(last_two), 1), []
    for _ in range(2):
        expansion = expand(scores, DRAFT[before, frontier].log_softmax(-1), topk=2)
        before, frontier, scores = frontier.gather(1, expansion.parents), expansion.tokens, expansion.scores
        expansions.append(expansion)
    tree = build_tree(last_two[:, 1], expansions, num_draft_tokens=5)
    above = tree.tokens.gather(1, tree.parents)
    above[:, 0] = last_two[:, 0]
    return tree, TARGET[above, tree.tokens]


VerifyTree = Callable[[DraftTree, torch.Tensor, torch.Tensor, SamplingTensors], Accepted]


def with_tree(verify: VerifyTree, requests: int) -> torch.Tensor:
    sampling = params(requests)

    def step(last_two: torch.Tensor, seq_lens: torch.Tensor) -> Accepted:
        tree, logits = grow(last_two)
        return verify(tree, logits, seq_lens, sampling)

    return decode(step, len(sampling.seed))


def by_place(tree: DraftTree, logits: torch.Tensor, seq_lens: torch.Tensor, sampling: SamplingTensors) -> Accepted:
    return verify_tree(tree, logits, seq_lens, sampling, SamplingMode.SAMPLED)


def by_node(tree: DraftTree, logits: torch.Tensor, seq_lens: torch.Tensor, sampling: SamplingTensors) -> Accepted:
    places = seq_lens[:, None] * tree.tokens.shape[1] + torch.arange(tree.tokens.shape[1])
    return verify_tree_rejection(tree, logits.softmax(-1), uniform(sampling.seed, places, Purpose.TARGET))


def siblings_in_turn(
    tree: DraftTree, logits: torch.Tensor, seq_lens: torch.Tensor, sampling: SamplingTensors, renormalise: bool
) -> Accepted:
    """The textbook: children are tried one by one, each with a draw of its own."""
    p, n = logits.softmax(-1), tree.tokens.shape[1]
    chosen = torch.full_like(tree.tokens, -1)
    for child in range(1, n):
        parent = tree.parents[:, child, None]
        of_parent = p.gather(1, parent[..., None].expand(-1, -1, V)).squeeze(1)
        token = tree.tokens[:, child, None]
        u = uniform(sampling.seed, seq_lens * n + child, Purpose.ACCEPT)
        open_ = chosen.gather(1, parent) < 0
        taken = open_ & (u[:, None] < of_parent.gather(1, token))
        chosen = torch.where(taken, chosen.scatter(1, parent, token), chosen)
        if renormalise:
            left = of_parent.scatter(1, token, 0)
            left = torch.where(open_ & ~taken, left / left.sum(-1, keepdim=True), of_parent)
            p = p.scatter(1, parent[..., None].expand(-1, -1, V), left[:, None])
    u = uniform(sampling.seed, seq_lens[:, None] * n + torch.arange(n), Purpose.FINAL)
    return verify_tree_greedy(tree, torch.where(chosen < 0, sample(p, u), chosen))


TREES: dict[str, tuple[VerifyTree, int]] = {
    "draws by place": (by_place, REQUESTS),
    "draws by node": (by_node, FEWER),
    "siblings in turn, as in the textbook": (lambda *args: siblings_in_turn(*args, renormalise=True), FEWER),
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_writes_what_the_target_writes(name: str) -> None:
    assert chi_square(with_tree(*TREES[name]), joint(TARGET)) > EXACT


def test_one_draw_accepts_as_many_as_siblings_in_turn() -> None:
    sampling, last_two = params(FEWER), torch.zeros(FEWER, 2, dtype=torch.int64)
    tree, logits = grow(last_two)
    args = (tree, logits, torch.full((FEWER,), PROMPT), sampling)
    one, turns = by_place(*args), siblings_in_turn(*args, renormalise=True)
    shares = torch.bincount(one.num_accepted, minlength=3) / FEWER
    assert chi_square(torch.bincount(turns.num_accepted, minlength=3), shares) > 1e-6
    assert shares.min() > 0.05


def test_siblings_tried_without_renormalising_show() -> None:
    counts = with_tree(lambda *args: siblings_in_turn(*args, renormalise=False), FEWER)
    assert chi_square(counts, joint(TARGET)) < WRONG


def test_a_tree_emits_the_very_tokens_of_plain_sampling() -> None:
    sampling = params(FEWER)
    plain = torch.zeros(FEWER, 2, dtype=torch.int64)
    for place in range(PROMPT, PROMPT + TOKENS):
        logits = TARGET[plain[:, -2], plain[:, -1]]
        drawn = draw(logits, sampling, SamplingMode.SAMPLED, torch.full((FEWER,), place), Purpose.TARGET)
        plain = torch.cat([plain, drawn.tokens[:, None]], 1)
    first, second, third = plain[:, 2:].unbind(1)
    assert torch.bincount((first * V + second) * V + third, minlength=V**TOKENS).equal(with_tree(by_place, FEWER))
