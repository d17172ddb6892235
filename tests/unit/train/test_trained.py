"""The weights that are shipped: what they were measured to do, that they still do it, and that the card says so."""

from pathlib import Path

import pytest
import torch

import refimpl
from refimpl.lessons import results
from refimpl.model import registry
from refimpl.model.tokenizer import Tokenizer
from refimpl.train import card
from refimpl.train.evaluate import acceptance, decode
from refimpl.train.propose import drafter

MEBIBYTE = 2**20
BARS = {"eagle": 4.0, "dflash": 4.0}
"""Tokens a verify, small target, held-out code, greedy."""


def measured(**wanted):
    found = [row for row in results.load("training").data["acceptance"] if wanted.items() <= row.items()]
    assert len(found) == 1, wanted
    return found[0]


@pytest.mark.parametrize("draft", list(BARS))
def test_the_small_drafts_were_measured_above_their_bars_on_text_that_does_not_loop(draft):
    greedy = measured(size="small", draft=draft, temperature=0.0, text="code")
    assert greedy["accept_len"] >= BARS[draft]
    assert greedy["unique_8grams"] >= 0.5
    assert greedy["unique_8grams_among_all"] >= 0.5
    assert measured(size="small", draft=draft, temperature=1.0, text="code")["accept_len"] >= 2.0


def test_a_histogram_gives_the_mean_that_stands_beside_it():
    for row in results.load("training").data["acceptance"]:
        counts = row["histogram"]
        assert len(counts) == row["drafts"] + 1
        mean = sum(length * count for length, count in enumerate(counts, 1)) / sum(counts)
        assert row["accept_len"] == pytest.approx(mean, abs=1e-3)


def test_the_card_is_that_of_the_results():
    assert (registry.WEIGHTS / "MODEL_CARD.md").read_text() == card.text(results.load("training").data)


def test_each_file_has_at_most_16_mebibytes_and_all_together_at_most_32():
    sizes = [file.stat().st_size for file in registry.WEIGHTS.rglob("*.safetensors")]
    assert max(sizes) <= 16 * MEBIBYTE
    assert sum(sizes) <= 32 * MEBIBYTE


def prompts(rows=6, length=48):
    """From files of this package, which no model has learned."""
    tokenizer = Tokenizer.load()
    files = sorted(Path(refimpl.__file__).parent.rglob("*.py"), key=lambda file: (-file.stat().st_size, str(file)))
    return torch.tensor([tokenizer.encode(file.read_text())[:length] for file in files[:rows]])


@pytest.mark.parametrize(("heat", "floor"), [(0.0, 1.8), (1.0, 1.3)])
@pytest.mark.parametrize("kind", registry.DRAFT_KINDS)
def test_the_nano_drafts_are_believed_on_code_that_nobody_has_seen(kind, heat, floor):
    target = registry.load_target("nano")
    draft = registry.load_draft(kind, "nano", target)
    decoded = decode(target, drafter(draft), prompts(), draft.config.feature_layers, 40, heat)
    assert acceptance(decoded.counts)["accept_len"] >= floor
