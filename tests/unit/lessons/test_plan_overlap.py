"""A step's parts by their events: with the early event alone the verify is loaded beside the draft."""

from typing import Any

import pytest
import torch

from refimpl.device import host_work
from refimpl.engine.graph_runner import DecodeCudaGraphRunner
from refimpl.lessons.history_timing.cases import EAGLE_LATEST, PLANS
from refimpl.lessons.lines import WIDTH
from refimpl.lessons.plan_overlap import PRESETS, beside_us, bound, ends_us, picture, placed, text
from refimpl.lessons.plan_parts import LOAD, TOKENS, Part
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


def test_what_plan_loads_too_early_to_have_tokens_is_loaded_behind_the_join_by_forward(parts: list[Part]) -> None:
    tokens = [one for one in parts if one.name == TOKENS]
    assert [(one.preset, one.stream) for one in tokens] == [(EARLY, "forward")]
    of = {one.name: one for one in parts if one.preset == EARLY}
    assert of["draft"].end_us <= tokens[0].begin_us < tokens[0].end_us <= of["verify"].begin_us


def test_a_host_that_calls_late_moves_no_part(parts: list[Part], monkeypatch: pytest.MonkeyPatch) -> None:
    replay = DecodeCudaGraphRunner.replay

    def late(runner: DecodeCudaGraphRunner, *args: Any) -> Any:
        host_work("sim", 300.0)
        return replay(runner, *args)

    monkeypatch.setattr(DecodeCudaGraphRunner, "replay", late)
    late_parts = placed([EARLY], device="sim")
    assert [one for one in parts if one.preset == EARLY] == late_parts


def test_the_table_says_its_unit_and_each_name_in_the_picture_stands_in_its_bar_or_behind_it(
    parts: list[Part],
) -> None:
    assert "µs" in text(parts)
    axes = picture(parts, "sim").figure.axes[0]
    names = [words.get_text().strip() for words in axes.texts]
    assert names == [one.name for one in parts if not one.name.startswith(LOAD)]
    for words, part in zip(axes.texts, (one for one in parts if not one.name.startswith(LOAD)), strict=True):
        left, right = (axes.transData.transform((us, 0))[0] for us in (part.begin_us, part.end_us))
        extent = words.get_window_extent()
        assert extent.x1 <= right + 1 or extent.x0 >= right - 1
        assert extent.x0 >= left - 1
        assert extent.x1 <= axes.get_window_extent().x1 + 1


def test_each_preset_has_a_column_of_figures_and_the_table_fits_the_page(parts: list[Part]) -> None:
    heads, *lines = text(parts).splitlines()
    assert heads.split() == ["µs", *PRESETS]
    beside = next(line.split() for line in lines if line.startswith("beside the draft"))
    assert beside[-len(PRESETS) :] == [f"{beside_us(parts, preset):.0f}" for preset in PRESETS]
    assert max(map(len, [heads, *lines, *bound(parts).splitlines()])) <= WIDTH


def test_the_picture_says_in_words_what_lies_beside(parts: list[Part]) -> None:
    assert f"{EARLY} loads the verify beside its draft for {beside_us(parts, EARLY):.0f}" in picture(parts, "sim").alt
    assert f"{EARLY} copies the drafted tokens behind the join" in picture(parts, "sim").alt


def test_a_stalled_forward_lowers_the_acceptance_where_nobody_repairs_the_draft_extend() -> None:
    torch.set_num_threads(1)
    repaired, unrepaired = (decoded(row, device="sim") for row in ("plan-repaired", "plan-repaired-extend"))
    assert repaired.texts == unrepaired.texts
    assert unrepaired.accept_len < 0.8 * repaired.accept_len
