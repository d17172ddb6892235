"""The stories name presets of the history, in the order of their dates, and what they say of them is of the history."""

from refimpl.fences import Expect, history, preset
from refimpl.lessons.aftermath import ALL, STATED, STORIES, presets_of, told


def test_the_stories_are_those_of_the_five_changes_by_date() -> None:
    assert {story.pr for story in STORIES} == {21940, 25465, 29556, 29541, 30435}
    dates = [preset(story.before).date for story in STORIES]
    assert dates == sorted(dates)
    assert all(preset(story.before).pr == story.pr for story in ALL)


def test_every_program_is_a_presets_or_stated() -> None:
    known = {one.name for one in history()}
    assert set(presets_of()) <= known
    assert not known & set(STATED)
    assert {name for story in ALL for name in story.programs} == {*presets_of(), *STATED}


def test_what_comes_after_a_change_is_racy_in_the_history_and_what_mends_it_right() -> None:
    for story in ALL:
        if story.after not in STATED:
            assert preset(story.after).expect is not Expect.RIGHT
        if story.mended is not None and story.mended not in STATED:
            assert preset(story.mended).expect is Expect.RIGHT


def test_the_table_links_each_pull_request_and_marks_inferences() -> None:
    lines = told().splitlines()[2:]
    for story, line in zip(ALL, lines, strict=True):
        assert f"/pull/{story.pr})" in line
        assert ("(our inference)" in line) == story.inference


def test_a_row_has_the_date_of_its_own_pull_request() -> None:
    for story, line in zip(ALL, told().splitlines()[2:], strict=True):
        assert f"| {preset(str(story.pr)).date} |" in line
    assert preset("before-28363").date != preset("28363").date
