"""The first timeline: of four ways to write a fence, the one that goes both ways has no race."""

import pytest

from refimpl.lessons.first_look import explorable
from refimpl.order import check


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("none", {"RAW", "WAR"}), ("early", {"RAW", "WAR"}), ("behind", {"WAR"}), ("both", set())],
)
def test_a_record_covers_what_was_launched_before_it_and_a_read_needs_a_fence_of_its_own(
    name: str, kinds: set[str]
) -> None:
    assert {str(race.kind) for race in check(explorable().variant(name).program).races} == kinds


def test_the_reader_is_asked_before_the_answer_is_shown() -> None:
    assert explorable().to_json()["predict"]
