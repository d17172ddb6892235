"""One test for each rule of the schedule."""

import pytest

from refimpl.program import (
    Access,
    Api,
    DeviceSync,
    EventQuery,
    EventRecord,
    EventSync,
    Free,
    GraphLaunch,
    HostAsyncBegin,
    HostAsyncWait,
    HostRead,
    HostWork,
    Launch,
    Memcpy,
    Memset,
    Node,
    Program,
    ProgramError,
    RecordStream,
    SetDevice,
    SpanKind,
    StreamSync,
    StreamWaitEvent,
    StreamWaitStream,
    StreamWaitValue,
    StreamWriteValue,
    TensorAlloc,
    TensorFree,
    TraceSource,
    UserError,
)
from refimpl.timeline import Costs, schedule
from tests.unit.timeline.loops import BUFFERS, of, program, span, times


def test_host_pays_one_call_for_each_op_and_its_own_work_in_full() -> None:
    trace = schedule(program(HostWork(us=100), Launch(stream="s", name="k"), EventRecord(event="e", stream="s")))
    assert times(trace, "host work") == (0, 100)
    assert (span(trace, "k").submit_us, span(trace, "k").ready_us) == (100, 106)
    assert span(trace, "record(e)").ready_us == 112


def test_costs_may_differ_by_call_and_by_kind_of_work() -> None:
    costs = Costs(call_us=2, calls={"graph_launch": 14}, launch_us=30, node_us=5)
    trace = schedule(program(Launch(stream="s", name="k"), GraphLaunch(stream="t", nodes=(Node(name="n"),))), costs)
    assert times(trace, "k") == (2, 32)
    assert times(trace, "n") == (16, 21)


@pytest.mark.parametrize(
    "bad", [{"call_us": -1}, {"copy_us": float("inf")}, {"calls": {"launch": -1}}, {"calls": {"jump": 1}}]
)
def test_costs_are_checked_at_construction(bad: dict[str, object]) -> None:
    with pytest.raises(UserError):
        Costs(**bad)  # type: ignore[arg-type]


def test_stream_is_first_in_first_out_and_streams_do_not_slow_each_other_down() -> None:
    ops = (
        Launch(stream="s", name="a", us=50),
        Launch(stream="s", name="b", us=50),
        Launch(stream="t", name="c", us=50),
    )
    trace = schedule(program(*ops))
    assert [times(trace, name) for name in "abc"] == [(6, 56), (56, 106), (18, 68)]


def test_wait_takes_the_capture_current_at_its_call() -> None:
    trace = schedule(
        program(
            Launch(stream="s", name="first", us=100),
            EventRecord(event="e", stream="s"),
            StreamWaitEvent(event="e", stream="t"),
            Launch(stream="s", name="second", us=500),
            EventRecord(event="e", stream="s"),
            Launch(stream="t", name="after", us=1),
        )
    )
    assert times(trace, "wait(e)") == (18, 106)
    assert span(trace, "after").start_us == 106


def test_wait_on_a_never_recorded_event_takes_no_time() -> None:
    assert times(schedule(program(StreamWaitEvent(event="e", stream="t"))), "wait(e)") == (6, 6)


def test_wait_holds_its_stream_and_not_the_host() -> None:
    ops = (Launch(stream="s", us=900), EventRecord(event="e", stream="s"), StreamWaitEvent(event="e", stream="t"))
    trace = schedule(program(*ops, HostWork(name="work", us=1)))
    assert times(trace, "work") == (18, 19)


def test_wait_stream_waits_for_what_the_other_stream_holds_now() -> None:
    ops = (Launch(stream="s", us=100), StreamWaitStream(stream="t", on="s"), Launch(stream="s", us=900))
    trace = schedule(program(*ops, Launch(stream="t", name="after")))
    assert times(trace, "wait_stream(s)") == (12, 106)
    assert span(trace, "after").start_us == 106


@pytest.mark.parametrize("call", [EventSync(event="e"), EventQuery(event="e"), StreamSync(stream="s"), DeviceSync()])
def test_synchronize_holds_the_host_until_what_it_captures_has_ended(call: EventSync) -> None:
    ops = (Launch(stream="s", us=100), EventRecord(event="e", stream="s"), Launch(stream="t", us=50))
    (blocked,) = [s for s in schedule(program(*ops, call)).spans if s.kind is SpanKind.BLOCKED]
    assert (blocked.lane, blocked.start_us, blocked.end_us) == ("host", 24, 106)


def test_device_synchronize_leaves_other_devices_alone() -> None:
    ops = (Launch(stream="far", us=500), DeviceSync(), SetDevice(device=1), DeviceSync())
    held = [s.end_us for s in schedule(program(*ops)).spans if s.kind is SpanKind.BLOCKED]
    assert held == [12, 506]


def test_legacy_stream_starts_after_blocking_streams_and_they_after_it() -> None:
    ops = [Launch(stream=s, name=s, us=100) for s in ("b", "s", "legacy", "b2")]
    streams = {**program().streams, "b2": program().streams["b"]}
    trace = schedule(program(*ops, **streams))
    assert times(trace, "s") == (12, 112)
    assert times(trace, "legacy") == (106, 206)
    assert times(trace, "b2") == (206, 306)


def test_legacy_stream_is_that_of_the_current_device() -> None:
    ops = (Launch(stream="b", us=100), SetDevice(device=1), Launch(stream="legacy", name="other"))
    trace = schedule(program(*ops))
    assert (span(trace, "other").lane, span(trace, "other").start_us) == ("legacy 1", 12)
    assert trace.lanes[-1] == "legacy 1"


@pytest.mark.parametrize(
    ("api", "src", "dst", "held_until"),
    [
        (Api.ASYNC, "x", "pinned", None),
        (Api.ASYNC, "pageable", "pinned", 112),
        (Api.SYNC, "x", "pageable", 112),
        (Api.SYNC, "pinned", "x", 112),
        (Api.SYNC, "pageable", "x", 12),
        (Api.SYNC, "x", "y", None),
    ],
)
def test_copy_holds_the_host_as_its_memory_kinds_say(api: Api, src: str, dst: str, held_until: float | None) -> None:
    trace = schedule(program(HostWork(us=6), Memcpy(api=api, src=of(src), dst=of(dst), us=100)))
    held = [s.end_us for s in trace.spans if s.kind is SpanKind.BLOCKED]
    assert held == ([] if held_until is None else [held_until])


def test_sync_copy_from_pageable_memory_holds_the_host_until_the_legacy_stream_is_drained() -> None:
    trace = schedule(program(Launch(stream="b", us=100), Memcpy(api=Api.SYNC, src=of("pageable"), dst=of("x"), us=50)))
    assert [s.end_us for s in trace.spans if s.kind is SpanKind.BLOCKED] == [106]
    assert trace.end_us == 156


@pytest.mark.parametrize(
    ("api", "dst", "holds"), [(Api.SYNC, "pinned", True), (Api.SYNC, "x", False), (Api.ASYNC, "pinned", False)]
)
def test_fill_holds_the_host_only_when_sync_and_of_pinned_memory(api: Api, dst: str, holds: bool) -> None:
    spans = schedule(program(Memset(api=api, dst=of(dst), us=100))).spans
    assert any(s.kind is SpanKind.BLOCKED for s in spans) is holds


def test_agent_runs_beside_the_host_until_it_is_waited_for() -> None:
    begin = HostAsyncBegin(id="send", range=of("pinned"), access=Access.READ, us=200)
    trace = schedule(program(begin, HostWork(name="work", us=50), HostAsyncWait(id="send")))
    assert times(trace, "work") == (6, 56)
    assert times(trace, "wait for send") == (62, 206)
    assert span(trace, "begin send").lane == "agent send"


def test_graph_nodes_run_in_the_order_of_their_dependencies() -> None:
    nodes = (
        Node(name="left", us=30, deps=("root",)),
        Node(name="right", us=50, deps=("root",)),
        Node(name="join", us=5, deps=("left", "right")),
        Node(name="root", us=10),
    )
    trace = schedule(program(GraphLaunch(stream="s", nodes=nodes), Launch(stream="s", name="after")))
    assert [times(trace, name) for name in ("root", "left", "right", "join")] == [(6, 16), (16, 46), (16, 66), (66, 71)]
    assert span(trace, "after").start_us == 71


def test_graph_launch_with_a_duration_stretches_its_nodes() -> None:
    nodes = (Node(name="a", us=10), Node(name="b", us=30, deps=("a",)))
    trace = schedule(program(GraphLaunch(stream="s", nodes=nodes, us=400)))
    assert [times(trace, name) for name in "ab"] == [(6, 106), (106, 406)]


def test_graph_launch_without_kernels_takes_its_duration_all_the_same() -> None:
    nodes = (Node(name="mark", record="e"),)
    trace = schedule(program(GraphLaunch(stream="s", nodes=nodes, us=400), Launch(stream="s", name="after")))
    assert span(trace, "after").start_us == 406


def test_record_node_arms_its_event_anew_at_each_launch() -> None:
    graph = GraphLaunch(
        stream="s",
        nodes=(
            Node(name="read", us=40),
            Node(name="mark", record="e", deps=("read",)),
            Node(name="rest", us=500, deps=("mark",)),
        ),
    )
    trace = schedule(program(graph, StreamWaitEvent(event="e", stream="t"), Launch(stream="t", name="early")))
    assert span(trace, "early").start_us == 46


def test_wait_node_takes_the_capture_from_before_the_launch() -> None:
    nodes = (Node(name="mark", record="e", deps=("slow",)), Node(name="slow", us=300), Node(name="held", wait="e"))
    trace = schedule(
        program(Launch(stream="t", us=80), EventRecord(event="e", stream="t"), GraphLaunch(stream="s", nodes=nodes))
    )
    assert times(trace, "held") == (18, 86)


def test_wait_for_a_flag_ends_with_a_write_that_is_issued_later() -> None:
    ops = (StreamWaitValue(stream="s", flag="f"), Launch(stream="s", name="after"), HostWork(us=100))
    trace = schedule(program(*ops, StreamWriteValue(stream="t", flag="f")))
    assert times(trace, "wait for f") == (6, 118)
    assert span(trace, "after").start_us == 118


def test_wait_for_a_flag_ends_with_the_write_that_runs_first_not_the_one_issued_first() -> None:
    ops = (StreamWaitValue(stream="s", flag="f"), Launch(stream="t", us=250), StreamWriteValue(stream="t", flag="f"))
    trace = schedule(program(*ops, StreamWriteValue(stream="b", flag="f")))
    assert times(trace, "wait for f") == (6, 24)


def test_host_held_behind_a_flag_that_only_it_could_let_write_is_a_deadlock() -> None:
    ops = (StreamWaitValue(stream="s", flag="f"), StreamSync(stream="s"), StreamWriteValue(stream="t", flag="f"))
    with pytest.raises(
        ProgramError, match=r"case 'test', op 1: the program deadlocks: synchronize\(s\) holds the host for good"
    ):
        schedule(program(*ops))


def test_streams_that_wait_for_each_other_are_a_deadlock() -> None:
    ops = (
        StreamWaitValue(stream="s", flag="f"),
        StreamWriteValue(stream="s", flag="g"),
        StreamWaitValue(stream="t", flag="g"),
        StreamWriteValue(stream="t", flag="f"),
    )
    with pytest.raises(ProgramError, match=r"op 0: the program deadlocks: stream 's' stops for good at 'wait for f'"):
        schedule(program(*ops))


def test_host_may_be_held_behind_a_flag_whose_write_is_issued() -> None:
    ops = (
        StreamWaitValue(stream="s", flag="f"),
        Launch(stream="t", us=70),
        StreamWriteValue(stream="t", flag="f"),
        StreamSync(stream="s"),
    )
    assert times(schedule(program(*ops)), "synchronize(s)") == (24, 82)


def test_reuse_of_a_block_holds_the_host_for_the_streams_that_record_stream_named() -> None:
    ops = (
        TensorAlloc(buf="x", block="B"),
        RecordStream(buf="x", stream="t"),
        Launch(stream="t", us=300),
        TensorFree(buf="x", block="B"),
        TensorAlloc(buf="y", block="B"),
    )
    assert times(schedule(program(*ops)), "reuse of B") == (6, 306)


def test_allocator_calls_without_reuse_take_no_time_and_leave_no_span() -> None:
    assert (
        schedule(
            program(TensorAlloc(buf="x"), RecordStream(buf="x", stream="s"), TensorFree(buf="x"), Free(buf="y"))
        ).spans
        == ()
    )


def test_stall_delays_one_op_and_what_comes_after_it() -> None:
    ops = (Launch(stream="s", name="a"), Launch(stream="s", name="b"), Launch(stream="t", name="c"))
    trace = schedule(program(*ops), stall={0: 500})
    assert [times(trace, name)[0] for name in "abc"] == [500, 510, 18]


def test_spans_carry_their_op_and_stand_in_issue_order() -> None:
    trace = schedule(program(Launch(stream="s", us=900), HostRead(range=of("pinned")), Launch(stream="t")))
    assert [s.op for s in trace.spans] == [0, 1, 2]
    assert trace.source is TraceSource.SCHEDULED


def test_empty_program_gives_an_empty_trace() -> None:
    assert schedule(Program(ops=(), buffers=BUFFERS)).end_us == 0
