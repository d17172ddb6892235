"""DFLASH's own fence stands before the launch, as the barrier at the top of the loop does: results come behind both."""

from dataclasses import replace

import pytest

from refimpl.fences import preset
from refimpl.lessons.history.recorded import races, recorded
from refimpl.lessons.history.subject import subject_of

WINDOW = 8


@pytest.mark.parametrize("name", ["before-29556", "self-fence", "29556"])
def test_neither_fence_covers_what_results_write_where_there_is_a_window(name: str) -> None:
    found = races(recorded(replace(subject_of(preset(name)), window=WINDOW)))
    assert ("WAR", "full_to_swa") in {(race.kind, race.buffer) for race in found}


def test_behind_the_launch_the_barrier_does() -> None:
    one = preset("31687")
    assert (one.worker, one.window) == ("dflash", WINDOW)
    assert races(recorded(subject_of(one))) == ()
