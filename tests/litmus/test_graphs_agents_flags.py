"""Graphs, agents beside the host, and flags.

Source: NVIDIA's reference of cudaGraphLaunch, cudaGraphAddEventRecordNode, cudaGraphAddEventWaitNode and of stream
memory operations.
"""

from itertools import permutations

import pytest

from tests.litmus.words import (
    DEADLOCK,
    OK,
    RACE,
    begin,
    copy_now,
    end,
    graph,
    host_read,
    host_write,
    lints,
    node,
    only_race,
    read,
    record,
    report,
    set_flag,
    stream_synchronize,
    synchronize,
    verdict,
    wait,
    wait_flag,
    work,
    write,
)


def test_nodes_are_ordered_by_their_dependencies_alone() -> None:
    a, b = node("a", writes="x"), node("b", reads="x")
    assert verdict(graph("s", a, b)) == RACE
    assert verdict(graph("s", a, node("b", "a", reads="x"))) == OK
    assert verdict(graph("s", a, node("m", "a"), node("b", "m", reads="x"))) == OK
    assert verdict(graph("s", node("r"), node("a", "r", writes="x"), node("b", "r", writes="x"))) == RACE


def test_a_race_within_one_graph_asks_for_a_dependency() -> None:
    race = only_race(graph("s", node("a", writes="x"), node("b", reads="x")))
    assert (race.first.op, race.second.op) == (0, 0)
    assert race.edge.words == "make node graph/b depend on node graph/a"


def test_a_graph_stands_in_its_stream_as_a_whole() -> None:
    both = (node("a", reads="x"), node("b", writes="y"))
    assert verdict(write("s"), graph("s", *both), write("s", "y")) == OK
    assert verdict(write("t"), graph("s", *both)) == RACE
    assert verdict(graph("s", *both), write("t")) == RACE
    assert verdict(graph("s", *both), graph("s", *both)) == OK
    assert verdict(graph("s", *both), graph("t", *both)) == RACE


def test_an_event_recorded_after_the_launch_covers_every_branch() -> None:
    branches = (node("a"), node("b", "a", writes="x"), node("c", "a", writes="y"))
    assert verdict(graph("s", *branches), record("e", "s"), wait("e", "t"), read("t"), read("t", "y")) == OK
    assert verdict(record("e", "s"), graph("s", *branches), wait("e", "t"), read("t")) == RACE


def test_static_inputs_are_read_at_replay_and_not_at_capture() -> None:
    replay = graph("s", node("step", reads="x"))
    assert verdict(write("s"), replay, write("s"), replay) == OK
    assert verdict(write("s"), replay, write("t")) == RACE


def test_a_record_node_captures_its_dependencies_and_not_the_rest_of_the_graph() -> None:
    launch = graph("s", node("load", reads="x"), node("done", "load", record="e"), node("run", "done", reads="y"))
    assert verdict(launch, wait("e", "t"), write("t")) == OK
    assert verdict(launch, wait("e", "t"), write("t", "y")) == RACE


def test_a_record_node_without_dependencies_captures_what_its_stream_held_before() -> None:
    launch = graph("s", node("mark", record="e"), node("run", reads="y"))
    assert verdict(read("s"), launch, wait("e", "t"), write("t")) == OK
    assert verdict(read("s"), launch, wait("e", "t"), write("t", "y")) == RACE


def test_each_launch_records_the_event_again() -> None:
    launch = graph("s", node("load", reads="x"), node("done", "load", record="e"))
    assert verdict(launch, launch, wait("e", "t"), write("t")) == OK
    assert verdict(launch, synchronize("e"), write("t"), launch) == RACE


def test_a_wait_bound_before_the_next_launch_keeps_the_old_capture() -> None:
    launch = graph("s", node("load", reads="x"), node("done", "load", record="e"))
    assert verdict(launch, wait("e", "t"), launch, write("t")) == RACE
    assert verdict(launch, wait("e", "t"), write("t"), wait("e", "s"), launch) == RACE


def test_a_record_node_replaces_what_another_stream_recorded() -> None:
    launch = graph("s", node("done", record="e"))
    assert verdict(write("u"), record("e", "u"), launch, wait("e", "t"), read("t")) == RACE


def test_a_wait_node_holds_its_followers_alone() -> None:
    fork = (write("t"), record("e", "t"))
    held = graph("s", node("w", wait="e"), node("k", "w", reads="x"))
    free = graph("s", node("w", wait="e"), node("k", reads="x"))
    assert verdict(*fork, held) == OK
    assert verdict(*fork, free) == RACE
    assert verdict(*fork, free, read("s")) == RACE
    assert verdict(*fork, graph("s", node("w", wait="e")), read("s")) == OK
    assert lints(held) == [("wait-unrecorded", 0)]


def test_a_wait_node_binds_to_the_capture_current_at_the_launch() -> None:
    held = graph("s", node("w", wait="e"), node("k", "w", reads="x"))
    assert verdict(record("e", "t"), write("t"), held, record("e", "t")) == RACE
    assert verdict(write("t"), record("e", "t"), held, record("e", "u")) == OK


RE_ARM = (
    node("load", writes="x"),
    node("mark", "load", record="e"),
    node("gate", wait="e"),
    node("use", "gate", reads="x"),
)


@pytest.mark.parametrize("order", list(permutations(RE_ARM)), ids=lambda order: "-".join(n.name for n in order))
def test_the_order_in_which_nodes_are_listed_orders_nothing(order: tuple[object, ...]) -> None:
    """Nothing leads from ``mark`` to ``gate``: the gate may see the capture of an earlier launch, or none."""
    assert verdict(graph("s", *order)) == RACE  # type: ignore[arg-type]


def test_an_agent_beside_the_host_runs_between_its_begin_and_its_wait() -> None:
    assert verdict(begin("send", "pinned", "read"), host_write("pinned")) == RACE
    assert verdict(begin("send", "pinned", "read"), host_read("pinned")) == OK
    assert verdict(begin("send", "pinned", "read"), end("send"), host_write("pinned")) == OK
    assert verdict(begin("receive", "pinned", "write"), host_read("pinned")) == RACE
    assert verdict(begin("receive", "x", "write"), read("s")) == RACE
    assert verdict(begin("receive", "x", "write"), end("receive"), read("s")) == OK


def test_an_agent_sees_what_the_host_has_seen_when_it_begins() -> None:
    assert verdict(write("s"), begin("send", "x", "read")) == RACE
    assert verdict(write("s"), stream_synchronize("s"), begin("send", "x", "read")) == OK
    assert verdict(write("s"), begin("send", "x", "read"), stream_synchronize("s")) == RACE
    assert verdict(host_write("pinned"), begin("send", "pinned", "read")) == OK


def test_waiting_for_one_agent_does_not_wait_for_another() -> None:
    both = (begin("one", "pinned", "read"), begin("two", "pageable", "read"))
    assert verdict(*both, end("two"), host_write("pinned")) == RACE
    assert verdict(*both, end("two"), end("one"), host_write("pinned")) == OK
    assert verdict(begin("one", "pinned", "write"), begin("two", "pinned", "write")) == RACE


def test_a_flag_orders_the_wait_after_its_write() -> None:
    assert verdict(write("s"), set_flag("s"), wait_flag("t"), read("t")) == OK
    assert verdict(wait_flag("t"), read("t"), write("s"), set_flag("s")) == OK
    assert verdict(set_flag("s"), write("s"), wait_flag("t"), read("t")) == RACE
    assert verdict(write("s"), set_flag("s"), read("t"), wait_flag("t")) == RACE


def test_a_flag_with_two_writers_orders_only_what_both_come_after() -> None:
    assert verdict(write("s"), set_flag("s"), set_flag("u"), wait_flag("t"), read("t")) == RACE
    assert (
        verdict(write("s"), record("e", "s"), wait("e", "u"), set_flag("s"), set_flag("u"), wait_flag("t"), read("t"))
        == OK
    )
    assert verdict(write("s"), set_flag("s"), set_flag("s"), wait_flag("t"), read("t")) == OK
    assert verdict(set_flag("s"), write("s"), set_flag("s"), wait_flag("t"), read("t")) == RACE


def test_a_write_that_needs_the_wait_cannot_release_it() -> None:
    assert verdict(wait_flag("t"), read("t"), set_flag("t"), write("s"), set_flag("s")) == OK


def test_waits_that_could_release_each_other_still_come_after_who_begins() -> None:
    """Either flag may be set first, by ``t`` or through the other waiter; each way in begins after ``t``'s write."""
    ring = (wait_flag("s", "f"), set_flag("s", "g"), wait_flag("u", "g"), set_flag("u", "f"))
    assert verdict(*ring, write("t"), set_flag("t", "f"), set_flag("t", "g"), read("s")) == OK
    assert verdict(*ring, set_flag("t", "f"), write("t"), set_flag("t", "g"), read("s")) == RACE


def test_a_wait_that_nothing_releases_is_a_deadlock() -> None:
    assert verdict(wait_flag("t")) == DEADLOCK
    assert verdict(wait_flag("t"), set_flag("t")) == DEADLOCK
    assert verdict(wait_flag("s", "f"), set_flag("s", "g"), wait_flag("t", "g"), set_flag("t", "f")) == DEADLOCK


def test_a_host_that_waits_for_the_stuck_stream_never_issues_the_write() -> None:
    assert verdict(wait_flag("t"), stream_synchronize("t"), set_flag("s")) == DEADLOCK
    assert verdict(wait_flag("t"), record("e", "t"), synchronize("e"), set_flag("s")) == DEADLOCK
    assert verdict(wait_flag("t"), stream_synchronize("s"), set_flag("s")) == OK
    assert verdict(wait_flag("b"), copy_now("x", "pinned"), set_flag("s")) == DEADLOCK


def test_a_legacy_action_behind_a_stuck_blocking_stream_holds_the_other_blocking_ones() -> None:
    assert verdict(wait_flag("b"), work("legacy"), set_flag("c")) == DEADLOCK
    assert verdict(wait_flag("b"), work("legacy"), set_flag("s")) == OK
    assert verdict(wait_flag("s"), work("legacy"), set_flag("c")) == OK


def test_a_deadlock_names_where_the_lanes_stand_and_outweighs_a_race() -> None:
    found = report(write("s"), write("u"), wait_flag("t"), stream_synchronize("t"), set_flag("s"))
    assert found.verdict == DEADLOCK
    assert found.deadlock is not None
    assert found.deadlock.ops == (2,)
    assert "t stands at op 2, waiting for flag" in found.deadlock.words
