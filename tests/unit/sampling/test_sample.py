"""A token is drawn as often as its probability says, and never one that has none."""

import pytest
import torch

from refimpl.model.sampling import Purpose, SamplingMode, SamplingTensors, draw, probabilities, sample, uniform

JUST_BELOW_1 = 1 - 2**-24


def tensors(*rows: tuple[float, int, float]) -> SamplingTensors:
    temperature, top_k, top_p = zip(*rows, strict=True)
    return SamplingTensors(
        torch.tensor(temperature),
        torch.tensor(top_k, dtype=torch.int32),
        torch.tensor(top_p),
        torch.arange(len(rows)),
    )


def test_every_token_has_its_share_of_the_unit_interval() -> None:
    probs = torch.softmax(torch.randn(40, generator=torch.Generator().manual_seed(0)), 0)
    probs[::3] = 0
    steps = 1 << 14
    drawn = sample((probs / probs.sum()).expand(steps, -1), torch.arange(steps) / steps)
    counts = torch.bincount(drawn, minlength=40)
    assert (counts - steps * probs / probs.sum()).abs().max() <= 1
    assert counts[::3].sum() == 0


@pytest.mark.parametrize("u", [0.0, 0.5, JUST_BELOW_1])
def test_no_token_of_zero_probability_is_drawn_at_the_ends(u: float) -> None:
    probs = torch.zeros(6, 1000)
    for row, places in enumerate([[0], [999], [500], [0, 999], [1, 998], [499, 500]]):
        probs[row, places] = 1 / len(places)
    drawn = sample(probs, torch.full((6,), u))
    assert probs.gather(1, drawn[:, None]).min() > 0


def test_a_remnant_too_small_to_count_is_still_drawn_from() -> None:
    probs = torch.zeros(1, 8)
    probs[0, 5] = 1e-30
    assert sample(probs, torch.tensor([JUST_BELOW_1])).item() == 5


def test_weights_need_not_sum_to_one() -> None:
    weights = torch.tensor([[0.0, 2e-5, 6e-5]]).expand(4, -1)
    assert sample(weights, torch.tensor([0.0, 0.24, 0.26, JUST_BELOW_1])).tolist() == [1, 1, 2, 2]


def test_rows_of_temperature_0_are_their_argmax_even_among_equals() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 2.0]], dtype=torch.bfloat16).expand(2, 5, 4)
    probs = probabilities(logits, tensors((0.0, 0, 1.0), (1.0, 0, 1.0)), SamplingMode.SAMPLED)
    assert probs[0].tolist() == [[0, 1, 0, 0]] * 5
    assert probs[1, 0, 1] == probs[1, 0, 2]
    assert torch.allclose(probs[1], torch.softmax(logits[1].float(), -1))


@pytest.mark.parametrize("mode", SamplingMode)
def test_a_greedy_request_draws_its_argmax_in_every_mode(mode: SamplingMode) -> None:
    logits = torch.randn(3, 7, 11, generator=torch.Generator().manual_seed(1)).bfloat16()
    drawn = draw(logits, tensors(*[(0.0, 0, 1.0)] * 3), mode, torch.arange(21).view(3, 7), Purpose.TARGET)
    assert drawn.tokens.equal(logits.argmax(-1))


@pytest.mark.parametrize("mode", [SamplingMode.SAMPLED, SamplingMode.FILTERED])
def test_a_draw_returns_what_it_was_drawn_from(mode: SamplingMode) -> None:
    logits = torch.randn(2, 3, 9, generator=torch.Generator().manual_seed(2))
    params, places = tensors((0.7, 4, 1.0), (1.2, 0, 0.6)), torch.arange(6).view(2, 3)
    drawn = draw(logits, params, mode, places, Purpose.DRAFT)
    assert drawn.probs is not None
    assert drawn.probs.equal(probabilities(logits, params, mode))
    assert drawn.tokens.equal(sample(drawn.probs, uniform(params.seed, places, Purpose.DRAFT)))


def test_an_unfiltered_row_does_not_change_when_another_row_is_filtered() -> None:
    logits = torch.randn(2, 3, 500, generator=torch.Generator().manual_seed(3))
    params = tensors((0.8, 0, 1.0), (0.8, 3, 0.5))
    sampled = probabilities(logits, params, SamplingMode.SAMPLED)
    filtered = probabilities(logits, params, SamplingMode.FILTERED)
    assert filtered[0].equal(sampled[0])
    assert not filtered[1].equal(sampled[1])


def test_top_k_keeps_what_is_as_likely_as_the_last_kept() -> None:
    logits = torch.tensor([[2.0, 1.0, 1.0, 1.0, 0.0]])
    probs = probabilities(logits, tensors((1.0, 2, 1.0)), SamplingMode.FILTERED)
    assert (probs > 0).tolist() == [[True, True, True, True, False]]
    assert probs.sum().item() == pytest.approx(1)


def test_top_p_keeps_what_is_as_likely_as_the_last_kept() -> None:
    logits = torch.tensor([[0.4, 0.2, 0.2, 0.2]]).log()
    probs = probabilities(logits, tensors((1.0, 0, 0.5)), SamplingMode.FILTERED)
    assert (probs > 0).all()


def test_top_p_keeps_the_likeliest_that_reach_it_and_at_least_one() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().expand(4, -1)
    params = tensors((1.0, 0, 1e-6), (1.0, 0, 0.49), (1.0, 0, 0.7), (1.0, 0, 0.9))
    kept = (probabilities(logits, params, SamplingMode.FILTERED) > 0).sum(-1)
    assert kept.tolist() == [1, 1, 2, 3]


def test_top_p_measures_what_top_k_left() -> None:
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    # Of the first two, 0.4 is 0.57: enough for 0.5, where of all four it is not.
    kept = (probabilities(logits, tensors((1.0, 2, 0.5)), SamplingMode.FILTERED) > 0).sum(-1)
    assert kept.tolist() == [1]


def test_a_top_k_of_all_or_more_filters_nothing() -> None:
    logits = torch.randn(3, 10, generator=torch.Generator().manual_seed(4))
    probs = probabilities(logits, tensors(*[(1.0, k, 1.0) for k in (0, 10, 1000)]), SamplingMode.FILTERED)
    assert probs.equal(torch.softmax(logits, -1))


def test_sampling_tensors_that_do_not_fit_are_refused() -> None:
    good = tensors((1.0, 0, 1.0))
    with pytest.raises(ValueError, match=r"top_k is torch\.int64 \[1\]: give torch\.int32"):
        SamplingTensors(good.temperature, good.top_k.long(), good.top_p, good.seed)
    with pytest.raises(ValueError, match=r"temperature is torch\.float32 \[2\]"):
        SamplingTensors(torch.ones(2), good.top_k, good.top_p, good.seed)
