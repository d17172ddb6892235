"""Advice beside a race: a record that stands in the program already is waited for, not made again."""

import pytest

from refimpl.order import check
from refimpl.program import (
    Buffer,
    EventRecord,
    HostRead,
    Launch,
    Mem,
    Op,
    Program,
    Range,
    Stream,
    StreamWaitEvent,
)

LENS = Range("lens", 0, 128)
VERIFY = Launch(stream="forward", name="verify", writes=(LENS,))
GATHER = Launch(stream="schedule", name="gather", reads=(LENS,))
DONE = EventRecord(event="verify_done", stream="forward")
OTHER = EventRecord(event="verify_done", stream="schedule")


def words(*ops: Op) -> str:
    streams = {"forward": Stream(), "schedule": Stream()}
    buffers = {"lens": Buffer(bytes=128, mem=Mem.PINNED)}
    (race,) = check(Program(id="mine", streams=streams, buffers=buffers, ops=ops)).races
    return race.edge.words


def test_a_record_behind_the_first_op_is_waited_for() -> None:
    assert words(VERIFY, DONE, GATHER) == "let schedule wait for verify_done (op 1) before op 2 (gather)"
    assert words(VERIFY, DONE, HostRead(range=LENS)).startswith("synchronize on verify_done (op 1) before op 2")


@pytest.mark.parametrize("ops", [(VERIFY, GATHER), (DONE, VERIFY, GATHER), (VERIFY, DONE, OTHER, GATHER)])
def test_where_no_event_holds_the_first_op_a_record_is_advised(ops: tuple[Op, ...]) -> None:
    assert words(*ops).startswith("record an event on forward after op")


def test_following_the_advice_orders_the_pair() -> None:
    wait = StreamWaitEvent(event="verify_done", stream="schedule")
    ops = (VERIFY, DONE, wait, GATHER)
    streams = {"forward": Stream(), "schedule": Stream()}
    assert not check(Program(streams=streams, buffers={"lens": Buffer(bytes=128)}, ops=ops)).races
