"""Forced accept lengths follow their histogram, row by row, and leave the tokens real."""

import json
from pathlib import Path

import pytest
import torch

from refimpl.model.acceptance import PADDING, ForcedAcceptance
from tests.oracle.chi_square import chi_square

REQUESTS = 20_000
DRAFTS, TARGET = torch.arange(10, 13).expand(REQUESTS, -1), torch.arange(20, 24).expand(REQUESTS, -1)
SEEDS = torch.arange(REQUESTS)


def lengths(forced: ForcedAcceptance, seq_lens: torch.Tensor) -> torch.Tensor:
    return forced.accept(DRAFTS, TARGET, SEEDS, seq_lens).accept_len


def test_lengths_are_drawn_as_often_as_they_were_counted() -> None:
    counts = [3, 0, 5, 2]
    forced = ForcedAcceptance(counts, "cpu")
    drawn = lengths(forced, SEEDS % 97)
    assert chi_square(torch.bincount(drawn - 1, minlength=4), torch.tensor(counts)) > 1e-3
    assert drawn.double().mean().item() == pytest.approx(forced.mean, abs=0.03)


def test_lengths_of_a_request_at_two_places_are_independent() -> None:
    forced = ForcedAcceptance([1, 1, 1, 1], "cpu")
    pairs = (lengths(forced, SEEDS % 7 + 5) - 1) * 4 + lengths(forced, SEEDS % 7 + 6) - 1
    assert chi_square(torch.bincount(pairs, minlength=16), torch.ones(16)) > 1e-3


def test_requests_of_one_step_get_lengths_of_their_own() -> None:
    drawn = lengths(ForcedAcceptance([1, 1, 1, 1], "cpu"), torch.full((REQUESTS,), 9))
    assert drawn.unique().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_the_tokens_are_drafts_and_then_the_target_s_own(length: int) -> None:
    accepted = ForcedAcceptance.fixed(length, "cpu").accept(DRAFTS, TARGET, SEEDS, SEEDS)
    wanted = [10, 11, 12][: length - 1] + [19 + length] + [PADDING] * (4 - length)
    assert accepted.tokens[0].tolist() == wanted
    assert accepted.tokens.equal(accepted.tokens[:1].expand(REQUESTS, -1))
    assert accepted.num_accepted.eq(length - 1).all()


def test_a_recorded_histogram_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "code.json"
    path.write_text(json.dumps([1, 2, 3]))
    assert ForcedAcceptance.recorded(path, "cpu").counts == (1, 2, 3)
    assert ForcedAcceptance.recorded(path, "cpu").mean == pytest.approx(14 / 6)


@pytest.mark.parametrize("text", ['{"1": 2}', "[0.5, 0.5]", "[true]"])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "code.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"code\.json: give a JSON list of whole numbers"):
        ForcedAcceptance.recorded(path, "cpu")


def test_histograms_that_mean_nothing_are_refused() -> None:
    for counts in ([], [0, 0], [1, -1]):
        with pytest.raises(ValueError, match="accept length counts"):
            ForcedAcceptance(counts, "cpu")
    with pytest.raises(ValueError, match="accept_len=0"):
        ForcedAcceptance.fixed(0, "cpu")
    with pytest.raises(ValueError, match="lengths up to 5 are forced on 3 drafts"):
        lengths(ForcedAcceptance.fixed(5, "cpu"), SEEDS)
