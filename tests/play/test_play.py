"""``play``: what ops read and write under a schedule, and what it asks of the device."""

from typing import Any

import pytest

from refimpl import program as p
from refimpl.device import sim
from refimpl.device.simulator.machine import DEVICE
from refimpl.play import compare, play
from refimpl.program import Access, Api, Program, Range, UserError
from tests.play.words import BUFFERS, STREAMS, kernel, program, read_by, whole

WRITE, READ = kernel("s", "write", writes="x"), kernel("t", "read", reads="x")


def test_in_the_order_of_issue_each_read_finds_the_last_write() -> None:
    assert read_by(play(program(WRITE, READ)), 1) == "the value of op 0 'write'"


def test_a_read_that_comes_first_finds_what_was_there_before() -> None:
    assert read_by(play(program(WRITE, READ), sim().Replay("h2.2.1")), 1) == "the initial value"


def test_a_stale_read_goes_on_into_what_is_made_from_it() -> None:
    ops = (WRITE, kernel("t", "double", reads="x", writes="y"), p.StreamSync(stream="t"), kernel("t", "use", reads="y"))
    found = compare(program(*ops), "h2.2")
    assert [(one.op, one.made) for one in found.differences] == [(1, False), (3, True), (None, True)]
    assert found.differences[1].sentence("h2.2").endswith("it reads the value of op 1 'double', made from other inputs")


def test_the_order_of_two_writes_shows_in_memory_at_the_end() -> None:
    found = compare(program(WRITE, kernel("t", "other", writes="x")), "h2.2")
    assert found.words == (
        "at the end x[0:64] holds the value of op 1 'other'; under h2.2 it holds the value of op 0 'write'"
    )


def test_an_order_that_changes_no_value_says_so() -> None:
    ops = (WRITE, kernel("t", "other", writes="x"), p.DeviceSync(), kernel("s", "last", writes="x"))
    found = compare(program(*ops), "h2.2")
    assert found.differences == ()
    assert found.words.startswith("under h2.2 every value is right: ")


def test_a_copy_moves_values_as_they_are() -> None:
    ops = (WRITE, p.Memcpy(src=whole("x"), dst=whole("y"), stream="s"), kernel("s", "use", reads="y"))
    assert read_by(play(program(*ops)), 2) == "the value of op 0 'write'"


def test_a_copy_of_parts_names_all_of_them() -> None:
    halves = [p.Launch(stream="s", name=f"half {k}", writes=(Range("x", 32 * k, 32),)) for k in (0, 1)]
    ops = (*halves, p.Memcpy(src=whole("x"), dst=whole("y"), stream="s"), kernel("s", "use", reads="y"))
    assert read_by(play(program(*ops)), 3) == "part the value of op 0 'half 0', part the value of op 1 'half 1'"


def test_a_copy_between_ranges_of_another_shape_keeps_the_order_of_bytes() -> None:
    columns = p.Memcpy(src=Range("x", 0, 4, 4, 16), dst=Range("y", 0, 16), stream="s")
    ops = (p.Launch(stream="s", name="row", writes=(Range("x", 16, 16),)), columns)
    ops += tuple(p.Launch(stream="s", reads=(Range("y", 4 * k, 4),)) for k in range(2))
    played = play(program(*ops))
    assert read_by(played, 2) == "the initial value"
    assert read_by(played, 3) == "the value of op 0 'row'"


def test_a_copy_from_pageable_memory_takes_the_source_at_the_call() -> None:
    to_device = p.Memcpy(api=Api.SYNC, src=whole("pageable"), dst=whole("x"))
    ops = (p.HostWrite(range=whole("pageable")), to_device, p.HostWrite(range=whole("pageable")), READ)
    played = play(program(*ops, p.DeviceSync()), sim().Replay("h3.1.h.2"))
    assert [seen.lane for seen in played.reads] == ["host", "t"]
    assert read_by(played, 3) == "the value of op 0 'host write'"


def test_a_copy_from_pinned_memory_takes_the_source_when_it_runs() -> None:
    to_device = p.Memcpy(src=whole("pinned"), dst=whole("x"), stream="s")
    ops = (p.HostWrite(range=whole("pinned")), to_device, p.HostWrite(range=whole("pinned")))
    assert read_by(play(program(*ops), sim().Replay("h3.1")), 1) == "the value of op 2 'host write'"


def test_a_host_read_is_made_at_its_call() -> None:
    to_host = p.Memcpy(src=whole("x"), dst=whole("pinned"), stream="s")
    ops = (WRITE, to_host, p.HostRead(range=whole("pinned")))
    assert read_by(play(program(*ops), sim().Replay("h3.1x2")), 2) == "the initial value"
    assert read_by(play(program(*ops), sim().Replay("h2.1x2.h")), 2) == "the value of op 0 'write'"


def test_an_agent_writes_when_its_lane_runs() -> None:
    receive = p.HostAsyncBegin(id="receive", range=whole("pinned"), access=Access.WRITE)
    ops = (receive, p.HostRead(range=whole("pinned")), p.HostAsyncWait(id="receive"), p.HostRead(range=whole("pinned")))
    played = play(program(*ops), sim().Replay("h2.1.h2"))
    assert [read_by(played, 1), read_by(played, 3)] == ["the initial value", "the value of op 0 'receive'"]


def test_the_next_owner_of_a_block_overwrites_a_late_reader() -> None:
    ops = (
        p.TensorAlloc(buf="old", block="b", stream="s"),
        kernel("s", "fill", writes="old"),
        p.StreamWaitStream(stream="t", on="s"),
        kernel("t", "late", reads="old"),
        p.TensorFree(buf="old", block="b", stream="s"),
        p.TensorAlloc(buf="new", block="b", stream="s"),
        kernel("s", "recycle", writes="new"),
    )
    found = compare(program(*ops), "h7.1x3.2x2")
    assert found.words.endswith("it reads the value of op 6 'recycle'")


def test_a_node_of_a_graph_is_a_lane_of_its_own() -> None:
    nodes = (p.Node(name="a", writes=(whole("x"),)), p.Node(name="b", reads=(whole("x"),)))
    graph = program(p.GraphLaunch(stream="s", nodes=nodes))
    assert [seen.name for seen in play(graph).reads] == ["graph/b"]
    assert read_by(play(graph, sim().Replay("h.1.-1.-2")), 0) == "the value of op 0 'graph/a'"
    assert read_by(play(graph, sim().Replay("h.1.-2.-1")), 0) == "the initial value"


def test_a_wait_for_a_flag_ends_at_whichever_write_runs_first() -> None:
    wait = p.StreamWaitValue(stream="u", flag="go")
    flags = [p.StreamWriteValue(stream=stream, flag="go") for stream in ("s", "t")]
    ops = (wait, kernel("u", "use", reads="x"), kernel("s", "one", writes="x"), flags[0])
    ops += (kernel("t", "two", writes="x"), flags[1])
    assert read_by(play(program(*ops), sim().Replay("h6.2x2.1x2.3x2")), 1) == "the value of op 2 'one'"
    assert read_by(play(program(*ops), sim().Replay("h6.3x2.1x2.2x2")), 1) == "the value of op 4 'two'"
    with pytest.raises(UserError, match="runs lane 1, which is at 'wait for go'"):
        play(program(*ops), sim().Replay("h6.2.1"))
    play(program(*ops), sim().Timed())


def test_a_torn_write_is_read_in_part_and_whole_afterwards() -> None:
    ops = (WRITE, READ, p.DeviceSync(), kernel("t", "again", reads="x"))
    found = compare(program(*ops), "h2.1/4.2.1x3")
    assert [one.got for one in found.differences] == ["torn: part the value of op 0 'write', part the initial value"]
    assert [str(step) for step in found.named] == [
        *("host: op 0 write", "host: op 1 read"),
        *("s: op 0 write (piece 1 of 4)", "t: op 1 read"),
    ]


def test_seeds_tear_writes_too() -> None:
    runs = [play(program(WRITE, READ), sim().Adversary(seed=seed, torn=0.5)) for seed in range(100)]
    assert any(read_by(run, 1).startswith("torn") for run in runs)


def test_a_value_has_the_words_of_its_op() -> None:
    lens = p.Launch(stream="s", name="verify", writes=(whole("x"),), value="lengths of step 3")
    assert read_by(play(program(lens, READ)), 1) == "the value of op 0 'verify' (lengths of step 3)"


def test_each_op_is_one_call_of_the_host() -> None:
    ops = (WRITE, p.EventRecord(event="e", stream="s"), p.EventSync(event="e"), p.HostWork(), p.DeviceSync(), READ)
    played = play(program(*ops), sim().Replay("h3.1x2.h3"))
    assert [step.op for step in played.steps if step.lane is None] == [0, 1, 2, 3, 4, 5]


def test_a_host_that_is_blocked_makes_no_call() -> None:
    ops = (WRITE, p.StreamSync(stream="s"), READ)
    with pytest.raises(UserError, match="the schedule belongs to another program"):
        play(program(*ops), sim().Replay("h3.2"))


@pytest.mark.parametrize("id_", ["h.2", "h4", "h2.1x2", "1", "h2.-1"])
def test_an_id_of_another_program_is_refused_in_a_sentence(id_: str) -> None:
    with pytest.raises(
        UserError, match=r"^schedule '.+': step \d+ of \d+ .+: the schedule belongs to another program$"
    ):
        play(program(WRITE, READ), sim().Replay(id_))


def test_a_deadlock_is_a_sentence_and_leaves_a_device_that_works() -> None:
    stuck = program(p.StreamWaitValue(stream="s", flag="go"), WRITE)
    for schedule in (None, sim().Timed()):
        with pytest.raises(RuntimeError, match=r"^deadlock: .*waits for 'a write of go', which was not issued$"):
            play(stuck, schedule)
    assert read_by(play(program(WRITE, READ)), 1) == "the value of op 0 'write'"


def test_the_device_is_left_as_it_was() -> None:
    dev: Any = sim()
    before = (DEVICE.run, dict(DEVICE.queues), DEVICE.current)
    play(program(WRITE, READ), dev.Adversary(seed=1))
    assert (DEVICE.run, dict(DEVICE.queues), DEVICE.current) == before


def test_work_queued_before_runs_first_and_is_not_part_of_the_run() -> None:
    import torch

    dev: Any = sim()
    with dev.schedule(dev.Timed()):
        x = torch.ones(3, device="sim") + 1
        assert play(program(WRITE, READ), dev.Replay("h2.2.1")).id == "h2.2"
        assert x.tolist() == [2.0, 2.0, 2.0]


def test_a_program_of_nothing_is_played() -> None:
    assert play(Program(ops=(), streams=STREAMS, buffers=BUFFERS)).values() == b""
