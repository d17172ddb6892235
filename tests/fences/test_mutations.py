"""Leave out each fence of every program without races: both engines must say the same of what is left, and each fence
is needed, with an order that shows why, or redundant."""

from pathlib import Path

import pytest

from refimpl.order import Fence, FenceReport, check, drop, explore, fences_of, judge_fences, lower
from refimpl.program import EventRecord, Program, ProgramError, UserError, Verdict, read_programs
from tests.litmus import words as w
from tests.oracle.orders import replayed

TESTS = Path(__file__).parents[1]
FILES = (TESTS / "cases" / "stream-programs.json", TESTS / "litmus" / "programs.json")
RACE_FREE = [q for file in FILES for q in read_programs(file) if check(q).verdict is Verdict.OK]
REPORTS = {program.id: judge_fences(program) for program in RACE_FREE}


def judged(*ops: object) -> dict[str, bool]:
    report = judge_fences(w.program(*ops))  # type: ignore[arg-type]
    return {str(verdict.fence): verdict.needed for verdict in report.verdicts}


def test_both_engines_give_the_same_verdict_without_any_one_fence() -> None:
    reports = REPORTS.values()
    differ = [(r.id, str(v.fence), v.clocks, v.orders) for r in reports for v in r.verdicts if v.clocks is not v.orders]
    needed, redundant = sum(len(r.needed) for r in reports), sum(len(r.redundant) for r in reports)
    assert not differ, f"{needed} needed, {redundant} redundant in {len(REPORTS)} programs; they differ on {differ}"
    assert needed > 100
    assert redundant > 10


@pytest.mark.parametrize("program", [pytest.param(q, id=q.id) for q in RACE_FREE])
def test_each_needed_fence_has_an_order_that_shows_why_and_each_other_says_what_else_orders(program: Program) -> None:
    for verdict in REPORTS[program.id].verdicts:
        assert verdict.why
        if verdict.needed and verdict.orders is Verdict.RACE:
            assert verdict.race is not None
            assert verdict.race.witness is not None
            replayed(lower(drop(program, verdict.fence)), verdict.race.witness.id)


def test_all_that_is_called_removable_can_go_at_once_and_no_other_redundant_fence_with_it() -> None:
    for program in RACE_FREE:
        report = REPORTS[program.id]
        assert check(drop(program, *report.removable)).verdict is Verdict.OK
        for verdict in report.redundant:
            if verdict.fence not in report.removable:
                assert check(drop(program, *report.removable, verdict.fence)).verdict is not Verdict.OK


def test_a_wait_and_the_record_that_it_needs_are_both_needed() -> None:
    ops = (w.write("s"), w.record("e", "s"), w.wait("e", "t"), w.read("t"))
    assert judged(*ops) == {"op 1 record(e)": True, "op 2 wait(e)": True}


def test_without_a_record_a_wait_takes_what_the_event_held_before() -> None:
    ops = (w.write("s"), w.record("e", "s"), w.work("s"), w.record("e", "s"), w.wait("e", "t"), w.read("t"))
    assert judged(*ops) == {"op 1 record(e)": False, "op 3 record(e)": False, "op 4 wait(e)": True}


def test_of_two_fences_that_cover_each_other_one_can_go() -> None:
    report = judge_fences(w.program(w.write("s"), w.wait_stream("t", "s"), w.wait_stream("t", "s"), w.read("t")))
    assert [verdict.needed for verdict in report.verdicts] == [False, False]
    assert [fence.op for fence in report.removable] == [1]


def test_a_redundant_fence_names_what_still_orders() -> None:
    report = judge_fences(
        w.program(w.write("s"), w.record("e", "s"), w.wait("e", "t"), w.device_synchronize(), w.read("t"))
    )
    why = {str(verdict.fence): verdict.why for verdict in report.verdicts if not verdict.needed}
    assert "op 0 still comes before op 4: " in why["op 2 wait(e)"]
    assert "the host blocks until" in why["op 2 wait(e)"]


def test_host_device_agent_and_allocator_fences_are_judged_as_well() -> None:
    assert judged(w.copy("x", "pinned", "s"), w.stream_synchronize("s"), w.host_read("pinned")) == {
        "op 1 synchronize(s)": True
    }
    assert judged(w.begin("send", "pinned", "read"), w.end("send"), w.host_write("pinned")) == {
        "op 1 wait for send": True
    }
    reuse = (w.take("old"), w.write("s", "old"), w.wait_stream("t", "s"), w.read("t", "old"))
    again = (w.record_stream("old", "t"), w.give("old"), w.take("new"), w.write("s", "new"))
    assert judged(*reuse, *again) == {"op 2 wait_stream(s)": True, "op 4 record_stream old": True}


def test_a_node_that_records_or_waits_and_each_dependency_is_a_fence() -> None:
    launch = w.graph("s", w.node("load", reads="x"), w.node("done", "load", record="e"), w.node("run", "done"))
    assert judged(launch, w.wait("e", "t"), w.write("t")) == {
        "op 0 graph/done record(e)": True,
        "op 0 graph/done after load": True,
        "op 0 graph/run after done": False,
        "op 1 wait(e)": True,
    }


def test_a_flag_is_a_fence_and_without_its_write_everything_stands_still() -> None:
    report = judge_fences(w.program(w.write("s"), w.set_flag("s"), w.wait_flag("t"), w.read("t")))
    assert [verdict.orders for verdict in report.verdicts] == [Verdict.DEADLOCK, Verdict.RACE]
    assert "stands still: nothing sets its flag" in report.verdicts[0].why


def test_dropping_keeps_the_index_of_every_other_op_and_leaves_the_program_as_it_was() -> None:
    program = w.program(w.write("s"), w.record("e", "s"), w.wait("e", "t"), w.read("t"))
    (record, wait) = fences_of(program)
    without = drop(program, record, wait)
    assert [op for k, op in enumerate(without.ops) if k not in (1, 2)] == [program.ops[0], program.ops[3]]
    assert isinstance(program.ops[1], EventRecord)
    assert explore(without).pairs == {(0, 3)}


def test_what_cannot_be_judged_is_refused_in_a_sentence() -> None:
    with pytest.raises(UserError, match="'litmus' has a race or a deadlock of its own"):
        judge_fences(w.program(w.write("s"), w.read("t")))
    with pytest.raises(ProgramError, match="has no fence op 0 wait"):
        drop(w.program(w.write("s")), Fence(0, "wait"))


def test_a_fence_that_a_bound_leaves_open_rests_on_the_clocks_and_says_so() -> None:
    from refimpl.order import Bounds

    program = w.program(w.write("s"), w.record("e", "s"), w.wait("e", "t"), w.read("t"))
    report: FenceReport = judge_fences(program, bounds=Bounds(states=2))
    assert [(verdict.needed, verdict.orders) for verdict in report.verdicts] == [(True, None), (True, None)]
    assert "the clocks find a race without it (the bound states=2" in report.verdicts[0].why
