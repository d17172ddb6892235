"""What two programs put in order, compared pair by pair."""

import pytest

from refimpl.lessons.plan_orders import freed, ordered, path
from refimpl.program import (
    Buffer,
    EventRecord,
    Launch,
    Op,
    Program,
    Stream,
    StreamWaitEvent,
    StreamWaitStream,
    UserError,
)

DRAFT, PLAN = Launch(stream="forward", name="draft"), Launch(stream="plan", name="load")
RECORD, WAIT = EventRecord(event="e", stream="forward"), StreamWaitEvent(event="e", stream="plan")
WAIT_STREAM = StreamWaitStream(stream="plan", on="forward")


def program(*ops: Op) -> Program:
    streams = {"forward": Stream(), "plan": Stream()}
    return Program(id="orders", streams=streams, buffers={"x": Buffer(1)}, ops=ops)


def test_an_event_at_the_tail_puts_in_order_what_wait_stream_does() -> None:
    event, stream = program(DRAFT, RECORD, WAIT, PLAN), program(DRAFT, WAIT_STREAM, PLAN)
    assert ordered(event) == ordered(stream) == {("draft", "load")}


def test_an_event_before_the_draft_frees_the_plan_of_it() -> None:
    tail, early = program(DRAFT, RECORD, WAIT, PLAN), program(RECORD, DRAFT, WAIT, PLAN)
    assert freed(tail, early) == [("draft", "load")]
    assert freed(early, tail) == []


def test_work_of_one_lane_is_freed_where_it_moves_to_another() -> None:
    moved = Launch(stream="forward", name="load")
    assert freed(program(DRAFT, moved), program(DRAFT, PLAN)) == [("draft", "load")]


def test_work_of_one_name_is_counted() -> None:
    assert ordered(program(DRAFT, DRAFT)) == {("draft", "draft (2)")}


def test_work_that_one_program_has_alone_is_no_pair_that_was_freed() -> None:
    assert freed(program(DRAFT, WAIT_STREAM, PLAN), program(DRAFT)) == []


def test_a_path_names_the_edges_between_the_lanes() -> None:
    lines = path(program(DRAFT, RECORD, WAIT, PLAN), "draft", "load").splitlines()
    assert lines[0] == "load comes behind draft:"
    assert len(lines) == 2
    assert "wait(e)" in lines[1]


@pytest.mark.parametrize(("first", "second"), [("draft", "load"), ("load", "draft"), ("draft", "verify")])
def test_without_an_order_or_without_the_work_there_is_no_path(first: str, second: str) -> None:
    with pytest.raises(UserError, match=r"nothing puts|has no work"):
        path(program(DRAFT, PLAN), first, second)


def test_a_path_looks_one_way() -> None:
    with pytest.raises(UserError, match="nothing puts 'draft' behind 'load'"):
        path(program(DRAFT, WAIT_STREAM, PLAN), "load", "draft")
