"""A program that stands still is told so under every order, however much else could still run."""

import pytest

from refimpl.device import sim
from refimpl.play import play
from refimpl.program import EventQuery, EventRecord, Launch, Program, Stream, StreamWaitValue


@pytest.mark.parametrize("seed", range(30))
def test_a_stuck_lane_beside_one_that_could_go_on_is_a_deadlock_in_one_sentence(seed: int) -> None:
    program = Program(
        streams={"stuck": Stream(), "free": Stream()},
        ops=(
            StreamWaitValue(stream="stuck", flag="never"),
            Launch(stream="free", name="k"),
            EventRecord(event="f", stream="stuck"),
            EventQuery(event="f"),
            EventRecord(event="f", stream="free"),
        ),
    )
    with pytest.raises(RuntimeError, match="deadlock") as stopped:
        play(program, sim().Adversary(seed))
    assert "\n" not in str(stopped.value)
