"""Each fence of the engine as it is today is needed, or the checker proves that something else orders the same."""

from functools import cache

import pytest
import torch

from refimpl.fences import Expect, preset
from refimpl.lessons.history.recorded import recorded
from refimpl.lessons.history.subject import subject_of
from refimpl.lessons.timelines.proofs import fences_by_name, without_each
from refimpl.order import Fence, Race, check, drop
from refimpl.program import Program, Verdict

MOST_RECENT = ("latest", "latest-plan", "35748")
PUBLISH_READY, READ_DONE = "schedule waits for publish_ready", "schedule waits for read_done"
# What orders the nodes of a graph is its capture, and what the agent is asked for is told apart by request alone.
CAPTURED, AGENT = "graph", ("host synchronizes with event", "host synchronizes with kv transfer")


@cache
def program(name: str) -> Program:
    torch.set_num_threads(1)
    return recorded(subject_of(preset(name)))


@cache
def races_without(name: str) -> dict[str, tuple[Race, ...]]:
    return {fence: found for fence, found in without_each(program(name)).items() if fence != CAPTURED}


def of_the_loop(name: str) -> dict[str, tuple[Race, ...]]:
    return {fence: found for fence, found in races_without(name).items() if not fence.startswith(AGENT)}


@pytest.mark.parametrize("name", MOST_RECENT)
def test_the_presets_of_today_are_expected_to_be_right_and_have_no_race(name: str) -> None:
    assert preset(name).expect is Expect.RIGHT
    assert check(program(name)).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("name", "fences"),
    [
        ("latest", {PUBLISH_READY, READ_DONE, "schedule waits for forward"}),
        (
            "latest-plan",
            {READ_DONE, "schedule waits for forward", "plan waits for draft_done", "forward waits for plan"},
        ),
        ("35748", {READ_DONE, "schedule waits for forward"}),
    ],
)
def test_without_any_one_fence_the_checker_finds_a_race(name: str, fences: set[str]) -> None:
    everywhere = {"forward waits for schedule", "copy waits for forward", "host synchronizes with copy_done"}
    assert {fence for fence, found in of_the_loop(name).items() if found} == everywhere | fences


@pytest.mark.parametrize("name", ["latest-plan", "35748"])
def test_for_eagle_publish_ready_is_proved_redundant_given_the_barrier(name: str) -> None:
    """EAGLE's ``read_done`` stands behind the draft extend's snapshot, and so behind the publish: whoever waits for it
    waits for the lengths too. DFLASH's stands before the verify's replay, and does not cover them."""
    assert [fence for fence, found in of_the_loop(name).items() if not found] == [PUBLISH_READY]
    without_both = drop(program(name), *(f for fence in (PUBLISH_READY, READ_DONE) for f in named(name, fence)))
    assert ("RAW", "new_seq_lens_buf") in {(str(race.kind), race.bytes.buf) for race in check(without_both).races}


def test_for_dflash_no_fence_of_today_is_redundant() -> None:
    assert all(of_the_loop("latest").values())


def test_where_kv_comes_from_elsewhere_the_host_asks_for_the_forward_too_that_may_still_write_the_slots() -> None:
    asked = {fence: found for fence, found in races_without("35748").items() if fence.startswith(AGENT)}
    assert any(
        str(race.kind) == "WAW" and race.bytes.buf.startswith("kv of") for races in asked.values() for race in races
    )
    assert any(
        str(race.kind) == "RAW" and race.bytes.buf.startswith("kv of") for races in asked.values() for race in races
    )


def named(name: str, fence: str) -> tuple[Fence, ...]:
    return fences_by_name(program(name))[fence]
