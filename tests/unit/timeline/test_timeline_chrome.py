"""Export to Chrome trace events, and the edges that it draws."""

import json
from collections import Counter

from refimpl.program import EventRecord, GraphLaunch, Launch, Node, StreamSync, StreamWaitEvent, StreamWaitStream
from refimpl.timeline import event_edges, from_profiler, schedule, to_chrome
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
