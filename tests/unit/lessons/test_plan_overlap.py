"""A step's parts by their events: with the early event alone the verify is loaded beside the draft."""

import pytest
import torch

from refimpl.lessons.history_timing.cases import EAGLE_LATEST, PLANS
from refimpl.lessons.plan_overlap import PRESETS, Part, beside_us, ends_us, picture, placed, text
from refimpl.lessons.plan_stalled import decoded

EARLY = "latest-plan"


@pytest.fixture(scope="module")
def parts() -> list[Part]:
    torch.set_num_threads(1)
    return placed(device="sim")


def test_the_verify_is_loaded_beside_the_draft_with_the_early_event_alone(parts: list[Part]) -> None:
    assert {preset for preset in PRESETS if beside_us(parts, preset) > 0} == {EARLY}


def test_the_same_fence_in_two_spellings_places_every_part_alike(parts: list[Part]) -> None:
    stream, event = (
        [(one.name, one.stream, one.begin_us, one.end_us) for one in parts if one.preset == preset]
        for preset in PLANS[:2]
    )
    assert stream == event


def test_what_plan_does_is_on_plan_and_without_a_plan_stream_on_forward(parts: list[Part]) -> None:
    on_plan = {(one.preset, one.name) for one in parts if one.stream == "plan"}
    assert on_plan == {(preset, name) for preset in PLANS for name in ("load verify", "load draft_extend")}
    assert EAGLE_LATEST not in {preset for preset, _ in on_plan}


def test_the_early_event_gains_at_most_the_loads(parts: list[Part]) -> None:
    loads = sum(
        one.us for one in parts if one.preset == EAGLE_LATEST and one.name in ("load verify", "load draft_extend")
    )
    assert 0 < ends_us(parts, EAGLE_LATEST) - ends_us(parts, EARLY) <= loads


def test_the_picture_says_in_words_what_lies_beside(parts: list[Part]) -> None:
    assert f"{EARLY} loads the verify beside its draft for {beside_us(parts, EARLY):.0f}" in picture(parts, "sim").alt
    assert len(text(parts).splitlines()) == 1 + len(PRESETS)


def test_a_stalled_forward_lowers_the_acceptance_where_nobody_repairs_the_draft_extend() -> None:
    torch.set_num_threads(1)
    repaired, unrepaired = (decoded(row, device="sim") for row in ("plan-repaired", "plan-repaired-extend"))
    assert repaired.texts == unrepaired.texts
    assert unrepaired.accept_len < 0.8 * repaired.accept_len
