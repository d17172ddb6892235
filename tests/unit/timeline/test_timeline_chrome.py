"""Export to Chrome trace events, and the edges that it draws."""

import json
from collections import Counter
from contextlib import suppress

from refimpl.program import (
    EventRecord,
    GraphLaunch,
    Launch,
    Node,
    StreamSync,
    StreamWaitEvent,
    StreamWaitStream,
    UserError,
)
from refimpl.timeline import event_edges, from_profiler, schedule, to_chrome
from refimpl.timeline.ordering import ordering
from tests.property.programs import random_program
from tests.unit.timeline.loops import overlapped, program


def test_every_lane_is_a_thread_with_its_name_in_order() -> None:
    loop = overlapped("wait")
    events = to_chrome(schedule(loop), loop)["traceEvents"]
    assert [e["args"]["name"] for e in events if e["name"] == "thread_name"] == ["host", "schedule", "forward"]


def test_every_span_is_a_slice_and_every_queueing_call_has_one_arrow() -> None:
    trace = schedule(overlapped("wait"))
    events = to_chrome(trace)["traceEvents"]
    assert sum(e["ph"] == "X" and e["cat"] != "call" for e in events) == len(trace.spans)
    assert sum(e["ph"] == "X" and e["cat"] == "call" for e in events) < len(trace.spans)
    queued = len({span.op for span in trace.spans if span.lane != "host"})
    assert Counter(e["ph"] for e in events)["s"] == Counter(e["ph"] for e in events)["f"] == queued


def test_arrows_lead_forward_in_time_and_join_record_to_wait() -> None:
    loop = overlapped("wait")
    events = to_chrome(schedule(loop), loop)["traceEvents"]
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert all(e["ts"] <= ends[e["id"]]["ts"] for e in events if e["ph"] == "s")
    assert sum(e["ph"] == "s" and e["name"].startswith("verify_done") for e in events) == 5


def test_slices_carry_the_ranges_and_the_export_is_json() -> None:
    loop = overlapped("wait")
    out = json.loads(json.dumps(to_chrome(schedule(loop), loop)))
    copy = next(e for e in out["traceEvents"] if e["name"] == "copy x to pinned" and e["ph"] == "X")
    assert (copy["args"]["reads"], copy["args"]["writes"]) == ("x[0:64]", "pinned[0:64]")


def test_export_of_an_imported_trace_needs_no_program() -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 50.0, "dur": 9.0, "args": {"stream": 7}}
    assert to_chrome(from_profiler({"traceEvents": [kernel]}))["otherData"]["source"] == "measured"


def test_edge_leads_from_the_record_that_was_current_at_the_call() -> None:
    ops = (
        EventRecord(event="e", stream="s"),
        EventRecord(event="e", stream="t"),
        StreamWaitEvent(event="e", stream="b"),
        StreamWaitEvent(event="never", stream="b"),
    )
    assert [(e.source, e.target) for e in event_edges(program(*ops))] == [(1, 2)]


def test_edges_of_streams_lead_from_their_last_op() -> None:
    ops = (Launch(stream="s"), Launch(stream="s"), StreamWaitStream(stream="t", on="s"), StreamSync(stream="t"))
    assert [(e.event, e.source, e.target, e.blocks_host) for e in event_edges(program(*ops))] == [
        ("s", 1, 2, False),
        ("t", 2, 3, True),
    ]


def test_edges_of_a_graph_name_its_nodes() -> None:
    graph = GraphLaunch(stream="s", nodes=(Node(name="mark", record="e"), Node(name="hold", wait="e")))
    edges = event_edges(program(graph, graph, StreamWaitEvent(event="e", stream="t")))
    assert [(e.source, e.source_node, e.target, e.target_node) for e in edges] == [
        (0, "mark", 1, "hold"),
        (1, "mark", 2, None),
    ]


def test_there_is_an_arrow_for_every_ordering_edge_and_every_call() -> None:
    judged = 0
    for seed in range(150):
        made = random_program(seed)
        with suppress(UserError):  # a deadlock has no trace
            trace = schedule(made)
            edges = Counter(str(edge.kind) for edge in ordering(trace, made))
            calls = len({span.op for span in trace.spans if span.lane != "host"})
            events = to_chrome(trace, made)["traceEvents"]
            for phase in "sf":
                drawn = Counter(e["cat"] for e in events if e["ph"] == phase)
                assert drawn == edges + Counter(submit=calls)
            judged += 1
    assert judged > 80


def test_both_ends_of_an_arrow_lie_in_the_slices_that_they_join() -> None:
    """A viewer binds an end to the slice that is open at its time, and drops an arrow that it cannot bind."""
    for made in (overlapped("wait"), overlapped("synchronize"), *(random_program(seed) for seed in range(40))):
        with suppress(UserError):
            trace = schedule(made)
            events = to_chrome(trace, made)["traceEvents"]
            slices = [e for e in events if e["ph"] == "X"]
            spans = slices[: len(trace.spans)]
            ends = {(e["id"], e["ph"]): e for e in events if e["ph"] in "sf" and e["cat"] != "submit"}
            numbers = sorted({number for number, _ in ends})
            for number, edge in zip(numbers, ordering(trace, made), strict=True):
                for phase, place in (("s", edge.source), ("f", edge.target)):
                    end, own = ends[number, phase], spans[place]
                    assert end["tid"] == own["tid"]
                    assert own["ts"] <= end["ts"] < own["ts"] + own["dur"]


def test_a_mark_reaches_back_and_never_into_what_follows_it() -> None:
    ops = (Launch(stream="s", name="a", us=10), EventRecord(event="e", stream="s"), Launch(stream="s", name="b", us=10))
    slices = {e["name"]: e for e in to_chrome(schedule(program(*ops)))["traceEvents"] if e["ph"] == "X"}
    mark = slices["record(e)"]
    assert mark["dur"] > 0
    assert slices["a"]["ts"] <= mark["ts"]
    assert round(mark["ts"] + mark["dur"], 6) <= slices["b"]["ts"]
