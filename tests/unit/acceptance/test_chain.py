"""A chain is accepted up to its first wrong draft, and what follows is the target's own token."""

import pytest
import torch

from refimpl.model.acceptance import PADDING, last_accepted, verify_chain, verify_greedy, verify_rejection
from refimpl.model.sampling import SamplingMode, SamplingTensors

DRAFTS = torch.tensor([[5, 6, 7]])


@pytest.mark.parametrize(
    ("target", "tokens"),
    [
        ([1, 2, 3, 4], [1]),
        ([5, 2, 3, 4], [5, 2]),
        ([5, 6, 3, 4], [5, 6, 3]),
        ([5, 6, 7, 4], [5, 6, 7, 4]),
        ([1, 6, 7, 4], [1]),
    ],
)
def test_greedy_accepts_up_to_the_first_wrong_draft(target: list[int], tokens: list[int]) -> None:
    accepted = verify_greedy(DRAFTS, torch.tensor([target]))
    assert accepted.num_accepted.tolist() == [len(tokens) - 1]
    assert accepted.accept_len.tolist() == [len(tokens)]
    assert accepted.tokens.tolist() == [tokens + [PADDING] * (4 - len(tokens))]
    assert last_accepted(accepted).tolist() == tokens[-1:]


def one_hot(tokens: list[int]) -> torch.Tensor:
    return torch.nn.functional.one_hot(torch.tensor([tokens]), 10).float()


def reject(u_accept: list[float], u_final: float, q: torch.Tensor | None, p: torch.Tensor) -> list[int]:
    accepted = verify_rejection(DRAFTS, q, p, torch.tensor([u_accept]), torch.tensor([u_final]))
    assert accepted.accept_len.item() == accepted.num_accepted.item() + 1
    return accepted.tokens[0, : accepted.accept_len].tolist()


def test_a_draft_is_accepted_below_p_over_q() -> None:
    p, q = one_hot([5, 6, 7, 1]), one_hot([5, 6, 7])
    p[0, 1, 6], p[0, 1, 2] = 0.2, 0.8
    q[0, 1, 6], q[0, 1, 3] = 0.5, 0.5
    assert reject([0.9, 0.39, 0.9], 0.0, q, p) == [5, 6, 7, 1]
    assert reject([0.9, 0.41, 0.9], 0.0, q, p) == [5, 2]


def test_what_follows_a_rejection_is_drawn_from_what_q_left_of_p() -> None:
    p, q = one_hot([5, 6, 7, 1]), one_hot([5, 6, 7])
    p[0, 0] = torch.tensor([0.1, 0.2, 0.3, 0.2, 0, 0.2, 0, 0, 0, 0])
    q[0, 0] = torch.tensor([0.4, 0.1, 0.0, 0.2, 0, 0.3, 0, 0, 0, 0])
    # p - q is 0.1 at token 1 and 0.3 at token 2.
    assert [reject([0.99] * 3, u, q, p) for u in (0.0, 0.24, 0.26, 0.99)] == [[1], [1], [2], [2]]


def test_a_rejected_draft_that_was_not_drawn_is_drawn_no_more() -> None:
    p = one_hot([5, 6, 7, 1])
    p[0, 0] = torch.tensor([0, 0.25, 0, 0, 0, 0.5, 0.25, 0, 0, 0])
    assert reject([0.49] * 3, 0.0, None, p) == [5, 6, 7, 1]
    assert [reject([0.51] * 3, u, None, p) for u in (0.0, 0.49, 0.51, 0.99)] == [[1], [1], [6], [6]]


def test_behind_a_wholly_accepted_chain_all_of_p_is_drawn_from() -> None:
    p, q = one_hot([5, 6, 7, 1]), one_hot([5, 6, 7])
    p[0, 3] = 0.1
    for chosen in (q, None):
        assert [reject([0.5] * 3, u, chosen, p)[-1] for u in (0.0, 0.55, 0.95)] == [0, 5, 9]


@pytest.mark.parametrize("u", [0.0, 0.5, 1 - 2**-24])
def test_where_p_is_q_every_draft_is_accepted(u: float) -> None:
    rows = torch.softmax(torch.randn(1, 4, 10, generator=torch.Generator().manual_seed(0)), -1)
    assert len(reject([u] * 3, u, rows[:, :3].contiguous(), rows)) == 4


def test_a_rejection_by_a_rounding_still_emits_a_possible_token() -> None:
    q = torch.full((1, 3, 10), 0.1)
    p = torch.full((1, 4, 10), 0.1) * (1 - 1e-6)
    p[..., 9] = 0
    (token,) = reject([1 - 2**-24] * 3, 1 - 2**-24, q, p)
    assert token < 9


def test_greedy_and_sampled_requests_mix_in_a_batch() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(4, 4, 10, generator=generator)
    drafts = logits.argmax(-1)[:, :3].clone()
    drafts[0, 1] = (drafts[0, 1] + 1) % 10
    temperature = torch.tensor([0.0, 1.0, 0.0, 1.0])
    tensors = SamplingTensors(temperature, torch.zeros(4, dtype=torch.int32), torch.ones(4), torch.arange(4))
    q = torch.nn.functional.one_hot(drafts, 10).float()
    seq_lens = torch.tensor([3, 4, 5, 6])
    mixed = verify_chain(drafts, q, logits, seq_lens, tensors, SamplingMode.SAMPLED)
    greedy = verify_chain(drafts, None, logits, seq_lens, tensors, SamplingMode.GREEDY)
    assert mixed.tokens[::2].equal(greedy.tokens[::2])
    assert greedy.accept_len.tolist()[::2] == [2, 4]


def test_a_request_is_verified_alike_alone_and_in_a_batch() -> None:
    generator = torch.Generator().manual_seed(4)
    logits, drafts = torch.randn(8, 4, 10, generator=generator), torch.randint(10, (8, 3), generator=generator)
    q = torch.softmax(torch.randn(8, 3, 10, generator=generator), -1)
    tensors = SamplingTensors(torch.ones(8), torch.zeros(8, dtype=torch.int32), torch.ones(8), torch.arange(8))
    lens = torch.arange(8) + 20
    together = verify_chain(drafts, q, logits, lens, tensors, SamplingMode.SAMPLED)
    for row in range(8):
        one = slice(row, row + 1)
        params = SamplingTensors(tensors.temperature[one], tensors.top_k[one], tensors.top_p[one], tensors.seed[one])
        alone = verify_chain(drafts[one], q[one], logits[one], lens[one], params, SamplingMode.SAMPLED)
        assert alone.tokens.equal(together.tokens[one])


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"target_argmax has \[1, 3\] rows for \[1, 3\] drafts"):
        verify_greedy(DRAFTS, DRAFTS)
    with pytest.raises(ValueError, match="at least one draft"):
        verify_greedy(DRAFTS[:, :0], DRAFTS[:, :1])
    with pytest.raises(ValueError, match=r"q is \[1, 3, 9\]: give \[1, 3, 10\]"):
        reject([0.5] * 3, 0.5, torch.ones(1, 3, 9), torch.ones(1, 4, 10))
    with pytest.raises(ValueError, match=r"p has \[1, 3\] rows"):
        reject([0.5] * 3, 0.5, None, torch.ones(1, 3, 10))
