"""``lower``: lanes, units and calls of a program, and what each waits for."""

from refimpl import program as p
from refimpl.order import Bytes, lower
from tests.litmus import words as w


def test_lanes_count_from_1_as_they_get_work_and_nodes_of_graphs_from_minus_1_down() -> None:
    launch = w.graph("u", w.node("b", "a"), w.node("a"))
    units = lower(w.program(w.work("t"), w.begin("send", "x", "read"), launch, w.work("s"), launch))
    assert units.lanes == {1: "t", 2: "agent send", 3: "u", 4: "s"} | {
        -1: "graph/a",
        -2: "graph/b",
        -3: "graph/a",
        -4: "graph/b",
    }
    assert [unit.lane for unit in units.units] == [1, 2, 3, -1, -2, 4, 3, -3, -4]


def test_each_op_is_one_call_whatever_it_issues() -> None:
    units = lower(w.program(w.write("s"), w.wait_stream("t", "s"), w.alloc("x"), w.graph("s", w.node("a"))))
    assert [call.op for call in units.calls] == [0, 1, 2, 3]
    assert [call.units for call in units.calls] == [(0,), (1, 2), (), (3, 4)]


def test_a_wait_is_bound_when_it_is_issued() -> None:
    units = lower(w.program(w.wait("e", "t"), w.record("e", "s"), w.wait("e", "t"), w.record("e", "s")))
    assert [unit.after for unit in units.units] == [(), (), (1,), ()]


def test_a_wait_node_is_bound_at_the_launch_and_each_launch_records_again() -> None:
    launch = w.graph("s", w.node("mark", record="e"), w.node("gate", wait="e"))
    units = lower(w.program(launch, launch, w.synchronize("e")))
    gates = [unit for unit in units.units if unit.node == "gate"]
    marks = [unit.index for unit in units.units if unit.node == "mark"]
    assert [marks[0] in gate.after for gate in gates] == [False, True]
    assert units.calls[2].until == (marks[1],)


def test_a_stream_goes_on_after_every_branch_of_a_graph() -> None:
    units = lower(w.program(w.graph("s", w.node("a"), w.node("b", "a"), w.node("c", "a")), w.work("s")))
    after = units.units[-1].after
    assert [units.units[index].node for index in after] == ["b", "c"]


def test_an_action_of_the_legacy_stream_stands_between_the_blocking_ones() -> None:
    units = lower(w.program(w.work("b"), w.work("s"), w.work("legacy"), w.work("c"), w.work("s"), w.work("c")))
    assert [unit.after for unit in units.units] == [(), (), (0,), (2,), (), ()]


def test_a_synchronize_holds_the_next_call_and_not_its_own() -> None:
    units = lower(w.program(w.work("s"), w.stream_synchronize("s"), w.host_read("pinned")))
    assert (units.calls[1].first, units.calls[1].until) == ((), (0,))


def test_a_copy_from_pageable_memory_reads_on_the_host_behind_its_stream_and_writes_later() -> None:
    units = lower(w.program(w.work("legacy"), w.copy_now("pageable", "x")))
    call, (_, copy) = units.calls[1], units.units
    assert (call.first, call.until) == ((0,), ())
    assert [place.memory for place in call.reads] == ["buffer pageable"]
    assert (copy.reads, [place.memory for place in copy.writes]) == ((), ["buffer x"])


def test_a_copy_to_the_host_holds_the_host() -> None:
    assert lower(w.program(w.copy_now("x", "pinned"))).calls[0].until == (0,)
    assert lower(w.program(w.copy("x", "pinned", "s"))).calls[0].until == ()


def test_owners_of_one_block_share_a_memory() -> None:
    ops = (w.take("old"), w.write("s", "old"), w.give("old"), w.take("new"), w.write("s", "new"))
    (old, new) = (unit.writes[0] for unit in lower(w.program(*ops)).units)
    assert (old, new) == (Bytes("block block", w.whole("old")), Bytes("block block", w.whole("new")))


def test_a_recorded_stream_holds_back_the_next_owner_of_the_block() -> None:
    use = (w.take("old"), w.read("t", "old"), w.record_stream("old", "t"))
    units = lower(w.program(*use, w.work("t"), w.give("old"), w.work("t"), w.take("new")))
    assert units.calls[-1].until == (1,)


def test_a_flag_names_all_that_set_it_also_later() -> None:
    units = lower(w.program(w.wait_flag("t", "f"), w.set_flag("s", "f"), w.set_flag("u", "f")))
    assert (units.units[0].flag, units.writers) == ("f", {"f": (1, 2)})


def test_each_agent_is_a_lane_of_its_own_until_it_is_waited_for() -> None:
    begin = w.begin("send", "x", "read")
    units = lower(w.program(begin, begin, w.end("send"), begin, w.end("send")))
    assert [unit.lane for unit in units.units] == [1, 2, 3]
    assert [call.until for call in units.calls] == [(), (), (0, 1), (), (2,)]


def test_every_unit_waits_only_for_units_issued_before_it_and_in_other_lanes() -> None:
    from tests.property.programs import random_program

    for seed in range(200):
        units = lower(random_program(seed))
        for unit in units.units:
            assert units.units[unit.index] is unit
            assert all(other < unit.index and units.units[other].lane != unit.lane for other in unit.after)
        assert [index for call in units.calls for index in call.units] == list(range(len(units.units)))
        assert all(isinstance(units.program.ops[call.op], p.Op) for call in units.calls)
