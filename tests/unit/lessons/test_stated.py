"""Ops that are stated beside recorded ones change a verdict where they should, and nowhere else."""

from refimpl.lessons.aftermath import changes, touching
from refimpl.lessons.stated import PRIVATE, handed_on, unstated, with_item, with_private_reader
from refimpl.order import check
from refimpl.program import (
    Buffer,
    EventRecord,
    Launch,
    Op,
    Program,
    Range,
    Stream,
    StreamSync,
    StreamWaitEvent,
    StreamWaitStream,
)


def whole(*names: str) -> tuple[Range, ...]:
    return tuple(Range(name, 0, 16) for name in names)


def turns(count: int = 3) -> Program:
    """Turns of an engine in little: lengths behind ``verify_done``, the table behind ``read_done``."""
    ops: list[Op] = []
    for n in range(1, count + 1):
        if n > 1:
            ops += [
                StreamWaitEvent(event=f"verify_done {n - 1}", stream="schedule", step=n),
                StreamWaitEvent(event="read_done", stream="schedule", step=n),
            ]
        ops += [
            Launch(stream="schedule", name=f"prepare_for_decode {n}", writes=whole("req_to_token"), step=n),
            Launch(stream="schedule", name=f"resolve_seq_lens {n}", reads=whole("new_seq_lens"), step=n),
            StreamWaitStream(stream="forward", on="schedule", step=n),
            Launch(stream="forward", name=f"load_batch verify {n}", reads=whole("req_to_token"), step=n),
            EventRecord(event="read_done", stream="forward", step=n),
            Launch(stream="forward", name=f"verify {n}", step=n),
            Launch(stream="forward", name=f"publish {n}", writes=whole("new_seq_lens"), step=n),
            EventRecord(event=f"verify_done {n}", stream="forward", step=n),
        ]
    return Program(
        id="turns",
        streams={"schedule": Stream(), "forward": Stream()},
        buffers={name: Buffer(16) for name in ("req_to_token", "new_seq_lens")},
        ops=tuple(ops),
    )


def test_the_turns_are_ok() -> None:
    assert check(turns()).verdict == "ok"


def test_a_private_reader_races_unless_it_waits_by_itself() -> None:
    races = check(with_private_reader(turns(), waits=False)).races
    assert {(str(race.kind), race.bytes.buf) for race in races} == {("RAW", "new_seq_lens")}
    assert all(race.second.lane == PRIVATE for race in races)
    assert check(with_private_reader(turns(), waits=True)).verdict == "ok"


def test_the_first_turn_has_nothing_to_wait_for_and_gets_no_private_reader() -> None:
    added = [op for op in with_private_reader(turns(), waits=True).ops if getattr(op, "stream", "") == PRIVATE]
    assert {op.step for op in added} == {2, 3}


def test_an_item_adds_a_synchronize_a_turn_and_no_race() -> None:
    program = with_item(turns())
    assert sum(isinstance(op, StreamSync) for op in program.ops) == 3
    assert check(program).verdict == "ok"


def test_a_wait_behind_the_next_record_deadlocks_and_one_before_it_does_not() -> None:
    assert check(handed_on(turns(), early=False)).verdict == "deadlock"
    assert check(handed_on(turns(), early=True)).verdict == "ok"


def test_a_read_that_is_kept_quiet_cannot_race() -> None:
    bare = Program(
        id="bare",
        streams=turns().streams,
        buffers=turns().buffers,
        ops=tuple(op for op in turns().ops if not isinstance(op, StreamWaitEvent)),
    )
    assert {race.bytes.buf for race in check(bare).races} == {"req_to_token", "new_seq_lens"}
    quiet = unstated(bare, "load_batch verify", "req_to_token")
    assert {race.bytes.buf for race in check(quiet).races} == {"new_seq_lens"}


def test_who_touches_a_buffer_is_said_once_in_the_order_of_issue() -> None:
    assert touching(turns(), "req_to_token") == (
        "schedule: prepare_for_decode writes req_to_token",
        "forward: load_batch verify reads req_to_token",
    )


def test_changes_name_what_is_gone_and_what_is_new() -> None:
    old, new = turns(), with_private_reader(turns(), waits=True)
    added = {f"+ {PRIVATE}: pull lengths reads new_seq_lens", f"+ {PRIVATE} waits for verify_done"}
    assert added <= set(changes(old, new, "new_seq_lens"))
    assert {f"-{line[1:]}" for line in added} <= set(changes(new, old, "new_seq_lens"))
    assert changes(old, old, "new_seq_lens") == ()
