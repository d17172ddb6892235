"""``explore``: bounds by name, witnesses as schedules, deadlocks in words, JSON."""

import json
import time

import pytest

from refimpl.fences import VerifyDone
from refimpl.lessons.overlap_program import overlap_program
from refimpl.order import Bounds, Exploration, explore, spelled
from refimpl.program import Program, Stream, UserError, Verdict
from tests.litmus import words as w


def explored(*ops: object, **options: object) -> Exploration:
    return explore(w.program(*ops), **options)  # type: ignore[arg-type]


RACY = (w.write("s"), w.read("t"))


def test_a_witness_is_a_schedule_and_the_same_in_words() -> None:
    (race,) = explored(*RACY).races
    assert race.witness is not None
    assert (race.witness.id, race.witness.switches) == ("h2.2", 1)
    assert race.witness.steps == ("host: op 0 write", "host: op 1 read", "t: op 1 read")
    assert (race.pair, race.witness.early, race.witness.late) == ((0, 1), 1, 0)


def test_where_a_flag_turns_the_order_of_issue_round_the_witness_turns_it_back() -> None:
    """``read`` waits for a flag that is set after ``write`` was issued: as issued, ``write`` runs first."""
    (race,) = explored(w.wait_flag("t"), w.read("t"), w.set_flag("s"), w.write("u")).races
    assert race.witness is not None
    assert (race.witness.early, race.witness.late) == (3, 1)
    (race,) = explored(w.wait_flag("t"), w.read("t"), w.write("u"), w.set_flag("s")).races
    assert race.witness is not None
    assert (race.witness.early, race.witness.late) == (1, 2)


def test_two_nodes_of_one_launch_that_race_name_their_op_twice() -> None:
    (race,) = explored(w.graph("s", w.node("a", writes="x"), w.node("b", reads="x"))).races
    assert race.pair == (0, 0)
    assert race.witness is not None
    assert race.witness.id == "h.1.-2"


def test_a_lifetime_race_has_a_witness_too() -> None:
    use = (w.take("old"), w.write("s", "old"), w.wait_stream("t", "s"), w.read("t", "old"), w.give("old"))
    (race,) = explored(*use, w.take("new"), w.write("s", "new")).races
    assert (str(race.kind), race.pair) == ("lifetime", (3, 6))
    assert race.witness is not None
    assert race.witness.steps[-1] == "s: op 6 write"


def test_a_deadlock_says_who_stands_where_and_who_waits_for_them() -> None:
    found = explored(w.write("u"), w.wait_flag("t"), w.stream_synchronize("t"), w.set_flag("s"))
    assert found.verdict is Verdict.DEADLOCK
    assert found.deadlock is not None
    assert found.deadlock.ops == (1,)
    assert "host: before op 3 write flag it waits for t: op 1 wait for flag" in found.deadlock.words


def test_a_bound_on_states_leaves_the_verdict_open_and_says_how_far_it_came() -> None:
    found = explored(*RACY, bounds=Bounds(states=2))
    assert (found.verdict, found.bound) == (None, "the bound states=2 was hit after 2 states")
    assert found.to_json()["verdict"] == "unknown"
    assert (found.orders, found.traces, found.all_states) == (None, None, None)


def test_a_race_that_was_seen_stands_when_a_bound_is_hit_later() -> None:
    pairs = RACY * 40
    found = explored(*pairs, bounds=Bounds(states=500))
    assert (found.verdict, found.bound is None) == (Verdict.RACE, False)


def test_a_bound_on_seconds_is_named() -> None:
    found = explored(*RACY * 300, bounds=Bounds(seconds=1e-9), count=False)
    assert found.bound is not None
    assert found.bound.startswith("the bound seconds=1e-09 was hit after ")


def test_a_program_of_100_000_ops_hits_a_bound_at_once() -> None:
    begin = time.monotonic()
    found = explore(Program(ops=(w.work("s"),) * 100_001, streams={"s": Stream()}))
    assert (found.verdict, found.states) == (None, 0)
    assert found.bound == "the bound moves=10000 is below the program's 100001 or more, so no order was tried"
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("name", ["states", "seconds", "moves"])
def test_a_bound_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"bound {name}=0: give a number above 0"):
        Bounds(**{name: 0})


@pytest.mark.parametrize("fence", list(VerifyDone))
def test_the_overlapped_loop_of_12_iterations_is_searched_in_1_300_states_though_its_orders_have_90_digits(
    fence: VerifyDone,
) -> None:
    found = explore(overlap_program(fence, steps=12))
    assert found.verdict is (Verdict.RACE if fence is VerifyDone.NONE else Verdict.OK)
    assert found.orders is not None
    assert found.all_states is not None
    assert found.orders > 10**90
    assert found.states < 1_300 < found.all_states < 10_000
    assert found.traces == (2**11 if fence is VerifyDone.NONE else 1)


def test_every_state_is_visited_when_asked() -> None:
    quick, all_ = explored(*RACY * 3), explored(*RACY * 3, every_state=True)
    assert all_.states == all_.all_states == quick.all_states
    assert quick.states < all_.states
    assert quick.races == all_.races
    assert all_.asleep > 0


def test_json_holds_what_was_found() -> None:
    data = json.loads(json.dumps(explored(*RACY).to_json()))
    assert (data["verdict"], data["orders"], data["traces"], data["bound"]) == ("race", 3, 2, None)
    assert data["races"][0]["witness"]["id"] == "h2.2"
    assert (data["races"][0]["first"], data["races"][0]["second"]) == (0, 1)


def test_a_count_too_long_for_json_is_spelled() -> None:
    long_ = explored(*RACY)
    data = Exploration(**{**vars(long_), "orders": 7**6000}).to_json()
    assert data["orders"] == spelled(7**6000) == "3.9e+5070"
