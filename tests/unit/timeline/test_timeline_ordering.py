"""The arrows between a program's spans: one for every rule, and together with the lanes the whole order."""

from contextlib import suppress
from itertools import pairwise

import pytest

from refimpl import program as p
from refimpl.order import Units, lower
from refimpl.program import LEGACY, Launch, Node, Op, Program, Trace, UserError
from refimpl.timeline import schedule
from refimpl.timeline.ordering import SpanEdge, ordering
from tests.property.programs import KINDS, WITH_FLAGS, random_program
from tests.unit.timeline.loops import of, program

Named = tuple[str, str, str, str]


def arrows(*ops: Op) -> list[Named]:
    """Each arrow as source, target, kind, via."""
    made = program(*ops)
    trace = schedule(made)
    return [(*_ends(trace, edge), str(edge.kind), edge.via) for edge in ordering(trace, made)]


def _ends(trace: Trace, edge: SpanEdge) -> tuple[str, str]:
    return trace.spans[edge.source].name, trace.spans[edge.target].name


A, B = Launch(stream="s", name="a"), Launch(stream="t", name="b")
RECORD = p.EventRecord(event="e", stream="s")


def test_a_lane_and_a_call_show_their_own_order() -> None:
    assert arrows(A, A, B, p.HostWork(name="build", us=5)) == []


def test_a_capture_leads_to_the_wait_that_took_it() -> None:
    assert arrows(RECORD, p.StreamWaitEvent(event="e", stream="t")) == [("record(e)", "wait(e)", "event", "e")]


def test_a_mark_that_is_not_drawn_hands_on_what_its_stream_held() -> None:
    assert arrows(A, p.StreamWaitStream(stream="t", on="s")) == [("a", "wait_stream(s)", "stream", "s")]
    assert arrows(p.StreamWaitStream(stream="t", on="s")) == []


def test_a_mark_hands_on_every_end_of_a_graph() -> None:
    graph = p.GraphLaunch(stream="s", name="g", nodes=(Node(name="left"), Node(name="right")))
    wait = ("wait_stream(s)", "stream", "s")
    assert arrows(graph, p.StreamWaitStream(stream="t", on="s")) == [("left", *wait), ("right", *wait)]


def test_what_the_host_is_held_for_leads_to_it() -> None:
    assert arrows(RECORD, p.EventSync(event="e")) == [("record(e)", "synchronize(e)", "synchronize", "e")]
    assert arrows(A, B, p.DeviceSync()) == [
        ("a", "device_sync", "synchronize", "s"),
        ("b", "device_sync", "synchronize", "t"),
    ]
    copy = p.Memcpy(src=of("x"), dst=of("pinned"), api=p.Api.SYNC)
    assert arrows(copy) == [("copy x to pinned", "copy x to pinned", "synchronize", "")]


def test_the_legacy_stream_waits_for_blocking_streams_and_they_for_it() -> None:
    blocking, legacy = Launch(stream="b", name="b"), Launch(stream=LEGACY, name="l")
    assert arrows(blocking, legacy, Launch(stream="b", name="after"), A) == [
        ("b", "l", "legacy", ""),
        ("l", "after", "legacy", ""),
    ]


def test_nodes_of_a_graph_follow_their_dependencies_and_the_captures_before_the_launch() -> None:
    nodes = (
        Node(name="root"),
        Node(name="left", deps=("root",)),
        Node(name="right", deps=("root",)),
        Node(name="hold", wait="e", deps=("left",)),
    )
    graph = p.GraphLaunch(stream="t", name="g", nodes=nodes)
    assert arrows(RECORD, graph) == [
        ("root", "left", "graph", ""),
        ("root", "right", "graph", ""),
        ("left", "hold", "graph", ""),
        ("record(e)", "hold", "event", "e"),
    ]


def test_a_wait_for_a_flag_follows_the_write_that_was_first() -> None:
    late = p.StreamWriteValue(stream="b", flag="go")
    early = p.StreamWriteValue(stream="s", flag="go")
    wait = p.StreamWaitValue(stream="t", flag="go")
    slow = Launch(stream="b", name="slow", us=500)
    assert [arrow[1:] for arrow in arrows(slow, late, wait, early)] == [("wait for go", "flag", "go")]
    made = program(slow, late, wait, early)
    trace = schedule(made)
    (edge,) = ordering(trace, made)
    assert trace.spans[edge.source].lane == "s"


def test_an_agent_leads_to_the_host_that_waits_for_it() -> None:
    begin = p.HostAsyncBegin(id="send", range=of("pinned"), access=p.Access.READ)
    assert arrows(begin, p.HostAsyncWait(id="send"))[0][2:] == ("agent", "send")


def test_a_block_is_handed_on_after_what_recorded_streams_held() -> None:
    alloc, free = p.TensorAlloc(buf="x", stream="s", block="k"), p.TensorFree(buf="x", stream="s", block="k")
    again = p.TensorAlloc(buf="y", stream="s", block="k")
    assert arrows(alloc, p.RecordStream(buf="x", stream="t"), B, free, again) == [("b", "reuse of k", "allocator", "k")]


def test_one_span_for_a_whole_graph_stands_for_all_its_nodes() -> None:
    nodes = (Node(name="n"), Node(name="mark", record="e", deps=("n",)))
    made = program(p.GraphLaunch(stream="s", name="g", nodes=nodes), p.StreamWaitEvent(event="e", stream="t"))
    whole = p.Span("s", "verify", p.SpanKind.RUN, 10, 40, op=0)
    wait = p.Span("t", "wait(e)", p.SpanKind.WAIT, 20, 40, op=1)
    edges = ordering(Trace(("host", "s", "t"), (whole, wait), p.TraceSource.MEASURED), made)
    assert [(edge.source, edge.target) for edge in edges] == [(0, 1)]


# ── against the operational reading of the rules, which is written apart ──


def scheduled(seeds: range, kinds: tuple[str, ...]) -> list[tuple[Program, Trace]]:
    """Random programs that end, with their traces: most of them."""
    found = []
    for seed in seeds:
        made = random_program(seed, kinds)
        with suppress(UserError):  # a deadlock has no trace
            found.append((made, schedule(made)))
    assert len(found) > len(seeds) / 2
    return found


def closure(count: int, edges: set[tuple[int, int]]) -> list[set[int]]:
    """For each item, all that come before it."""
    into: list[set[int]] = [{a for a, b in edges if b == k} for k in range(count)]
    for _ in range(count):
        grown = [before.union(*(into[a] for a in before)) for before in into]
        if grown == into:
            return into
        into = grown
    return into


def span_of(units: Units, trace: Trace, unit: int) -> int | None:
    """The span that shows a unit: of a graph's node by its name, else the only one of its op on its stream."""
    of_it = units.units[unit]
    op = units.program.ops[of_it.op]
    if isinstance(op, p.GraphLaunch) and of_it.node is None:
        return None  # the stream reaches the graph: nothing is drawn
    if isinstance(op, p.StreamWaitStream) and of_it.name.startswith("record of"):
        return None
    on_host = [k for k, s in enumerate(trace.spans) if s.op == of_it.op and s.lane == "host"]
    fitting = [k for k, s in enumerate(trace.spans) if s.op == of_it.op and k not in on_host]
    if of_it.node is not None:
        fitting = [k for k in fitting if trace.spans[k].name == of_it.node]
    (found,) = fitting
    return found


@pytest.mark.parametrize("tens", range(15))
def test_arrows_and_lanes_give_the_order_in_which_units_must_run_and_arrows_no_more(tens: int) -> None:
    for made, trace in scheduled(range(10 * tens, 10 * tens + 10), KINDS):
        check_order(made, trace)


def check_order(made: Program, trace: Trace) -> None:
    units, edges = lower(made), ordering(trace, made)
    spans = [span_of(units, trace, unit.index) for unit in units.units]
    must = {(before, unit.index) for unit in units.units for before in unit.after}
    lanes: dict[int, list[int]] = {}
    for unit in units.units:
        lanes.setdefault(unit.lane, []).append(unit.index)
    must |= {pair for members in lanes.values() for pair in pairwise(members)}
    before = closure(len(spans), must)

    queues = {
        (a, b)
        for a, x in enumerate(trace.spans)
        for b, y in enumerate(trace.spans)
        if x.lane == y.lane != "host" and x.op is not None and y.op is not None and x.op < y.op
    }
    shown = closure(len(trace.spans), queues | {(edge.source, edge.target) for edge in edges})
    for late, earlier in enumerate(before):
        for early in earlier:
            a, b = spans[early], spans[late]
            assert a is None or b is None or a in shown[b], (trace.spans[a], trace.spans[b])
    for call in units.calls:
        held = [k for k, s in enumerate(trace.spans) if s.op == call.op and s.kind is p.SpanKind.BLOCKED]
        for unit in call.until if held else ():
            assert spans[unit] is None or spans[unit] in shown[held[0]]

    of_span = {span: unit for unit, span in enumerate(spans) if span is not None}
    for edge in edges:
        if edge.source in of_span and edge.target in of_span:
            assert of_span[edge.source] in before[of_span[edge.target]], edge


def test_no_arrow_leads_back_in_time() -> None:
    for made, trace in scheduled(range(100), (*KINDS, *WITH_FLAGS)):
        for edge in ordering(trace, made):
            source, target = trace.spans[edge.source], trace.spans[edge.target]
            waited = target.kind in (p.SpanKind.WAIT, p.SpanKind.BLOCKED)
            assert source.end_us <= (target.end_us if waited else target.start_us)
