import pytest

from refimpl.fences import Load
from refimpl.lessons.history.loads import SIZES, draw

SEEDS = range(8)


@pytest.mark.parametrize("models", SIZES)
@pytest.mark.parametrize("load", Load)
def test_a_seed_gives_the_same_requests_in_the_order_of_their_arrivals(load: Load, models: str) -> None:
    for seed in SEEDS:
        drawn = draw(load, models, seed)
        assert drawn == draw(load, models, seed)
        assert [one.turn for one in drawn] == sorted(one.turn for one in drawn)
    assert len({str(draw(load, models, seed)) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("models", SIZES)
@pytest.mark.parametrize("load", Load)
def test_every_request_fits_its_context(load: Load, models: str) -> None:
    for seed in SEEDS:
        for one in draw(load, models, seed):
            assert len(one.prompt_ids) + one.params.max_new_tokens <= SIZES[models].context


def test_steady_requests_never_wait_for_a_row_and_all_others_do() -> None:
    rows = SIZES["tiny"].rows
    assert {load for load in Load if len(draw(load, "tiny", 0)) > rows} == set(Load) - {Load.STEADY}


def test_each_prebuilt_prompt_is_longer_than_any_prompt_that_is_prefilled_here() -> None:
    for seed in SEEDS:
        drawn = draw(Load.PREBUILT, "tiny", seed)
        here = [len(one.prompt_ids) for one in drawn if not one.prebuilt]
        assert here
        assert max(here) <= min(len(one.prompt_ids) for one in drawn if one.prebuilt)


def test_of_the_requests_that_give_up_most_do_so_in_the_turn_of_their_prefill() -> None:
    patience = [one.abort_after for seed in SEEDS for one in draw(Load.ABORTS, "tiny", seed)[1:]]
    assert patience.count(1) > len(patience) / 2
