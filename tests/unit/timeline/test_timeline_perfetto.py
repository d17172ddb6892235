"""Perfetto's own format: read back with its own messages, everything is there and in a viewer's order."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

from refimpl.program import (
    GraphLaunch,
    Launch,
    Node,
    Program,
    Span,
    SpanKind,
    StreamWaitStream,
    Trace,
    TraceSource,
    UserError,
)
from refimpl.timeline import schedule
from refimpl.timeline.ordering import ordering
from refimpl.timeline.writing.perfetto import to_perfetto
from tests.property.programs import random_program
from tests.unit.timeline.loops import of, overlapped, program
from tests.view.long_run import long_run

Slice = tuple[str, str, int, int]
"""Lane, name, begin and end in nanoseconds."""


@dataclass
class Read:
    """What a viewer takes from the file: it follows the events in the order in which they stand.

    Args:
        lanes: names of the tracks under the root, by their rank; tracks of one name are shown as one.
        slices: in the order of their ends.
        flows: pairs of slices that an arrow joins, by its number.
        notes: what each slice tells, by lane and name.
        said: what the file says of itself.
    """

    lanes: list[str] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    flows: dict[int, tuple[Slice, Slice]] = field(default_factory=dict)
    notes: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)


def read(data: bytes) -> Read:
    found, tracks, ranks = Read(), {}, {}
    open_: dict[int, list[list[Any]]] = {}
    leaving: dict[int, list[Any]] = {}
    arriving: dict[int, list[Any]] = {}
    last = 0
    for packet in protos.Trace.FromString(data).packet:
        if packet.HasField("trace_attributes"):
            found.said.update({a.key: a.string_value for a in packet.trace_attributes.attribute})
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            tracks[track.uuid] = track
            if track.HasField("parent_uuid"):
                assert tracks[track.parent_uuid].child_ordering == protos.TrackDescriptor.EXPLICIT
                ranks[track.name] = track.sibling_order_rank
        if not packet.HasField("track_event"):
            continue
        assert packet.timestamp >= last
        last, event = packet.timestamp, packet.track_event
        lane, stack = tracks[event.track_uuid].name, open_.setdefault(event.track_uuid, [])
        if event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
            stack.append([lane, event.name, last, None])
            notes = {
                n.name: n.int_value if n.HasField("int_value") else n.string_value for n in event.debug_annotations
            }
            found.notes[lane, event.name] = {"cat": list(event.categories), **notes}
            at = stack[-1]
        else:
            at = stack.pop()
            at[3] = last
            found.slices.append(tuple(at))
        for number in event.flow_ids:
            assert number not in leaving
            leaving[number] = at
        for number in event.terminating_flow_ids:
            assert number in leaving, "an arrow that arrives before it left is dropped"
            arriving[number] = at
    assert not any(open_.values())
    assert leaving.keys() == arriving.keys()
    found.flows = {number: (tuple(leaving[number]), tuple(at)) for number, at in arriving.items()}
    found.lanes = sorted(ranks, key=lambda name: ranks[name])
    return found


def as_slice(span: Span) -> Slice:
    return span.lane, span.name, round(span.start_us * 1000), round(span.end_us * 1000)


def queued(trace: Trace) -> set[tuple[int | None, float]]:
    return {(s.op, s.submit_us) for s in trace.spans if s.lane != "host" and s.submit_us is not None}


def check(trace: Trace, made: Program | None = None) -> Read:
    """Slices are spans and calls; arrows are ordering edges and calls."""
    found = read(to_perfetto(trace, made))
    drawn = Counter(s for s in found.slices if found.notes[s[0], s[1]]["cat"] != ["call"])
    assert drawn == Counter(map(as_slice, trace.spans))
    assert len(found.slices) - drawn.total() == len(queued(trace))
    edges = [] if made is None else ordering(trace, made)
    wanted = Counter((as_slice(trace.spans[e.source]), as_slice(trace.spans[e.target])) for e in edges)
    calls = Counter((a, b) for a, b in found.flows.values() if a[1].startswith("call: "))
    assert Counter(found.flows.values()) - calls == wanted
    assert calls.total() == len(queued(trace))
    return found


@pytest.mark.parametrize("fence", ["synchronize", "wait"])
def test_slices_are_spans_and_arrows_are_ordering_edges_and_calls(fence: str) -> None:
    made = overlapped(fence)
    assert check(schedule(made), made).lanes == ["host", "schedule", "forward"]


def test_every_random_program_comes_through_whole() -> None:
    judged = 0
    for seed in range(120):
        made = random_program(seed)
        try:
            trace = schedule(made)
        except UserError:
            continue
        check(trace, made)
        judged += 1
    assert judged > 60


def test_a_long_run_without_a_program_has_its_threads_and_its_calls() -> None:
    run = long_run(2000)
    found = check(run)
    assert found.lanes == list(run.lanes)
    assert found.notes["host", "synchronize(copied 0)"]["call"] == "cudaEventSynchronize"


def test_branches_that_overlap_stand_in_tracks_of_one_name() -> None:
    nodes = (Node(name="left", us=50), Node(name="right", us=80))
    made = program(GraphLaunch(stream="s", nodes=nodes))
    found = check(schedule(made), made)
    assert {s[:2] for s in found.slices} >= {("s", "left"), ("s", "right")}
    names = [p.track_descriptor.name for p in protos.Trace.FromString(to_perfetto(schedule(made))).packet]
    assert names.count("s") == 2


def test_on_the_host_what_is_made_inside_stands_inside_whatever_comes_first() -> None:
    times = {"mark": (0.0, 0.0), "inner": (0.0, 2.0), "outer": (0.0, 5.0)}
    spans = tuple(Span("host", name, SpanKind.HOST, *at) for name, at in times.items())
    data = to_perfetto(Trace(("host",), spans, TraceSource.MEASURED))
    assert [s[1] for s in read(data).slices] == ["mark", "inner", "outer"]
    assert [p.track_descriptor.name for p in protos.Trace.FromString(data).packet].count("host") == 1


def test_slices_tell_ranges_step_and_call_site_and_the_file_its_source_and_device() -> None:
    made = program(Launch(stream="s", name="gather", reads=(of("x"),), writes=(of("y"),), step=3, site="loop.py:41"))
    trace = schedule(made)
    found = read(to_perfetto(trace, made, title="A title"))
    told = found.notes["s", "gather"]
    numbers = {"span": 0, "op": 0, "step": 3}
    assert told == {"cat": ["run"], **numbers, "site": "loop.py:41", "reads": "x[0:64]", "writes": "y[0:64]"}
    assert found.said == {"source": "scheduled", "device": "computed from a cost model", "title": "A title"}


def test_clocks_that_disagree_lose_at_most_the_arrow() -> None:
    made = program(Launch(stream="s", name="a"), StreamWaitStream(stream="t", on="s"))
    for ended, arrows in ((5.0, 1), (2.0, 0)):  # the launch runs from 3 to 10, and the wait for it ends before that
        spans = (Span("s", "a", SpanKind.RUN, 3.0, 10.0, 0), Span("t", "wait", SpanKind.WAIT, 1.0, ended, 1))
        found = read(to_perfetto(Trace(("host", "s", "t"), spans, TraceSource.MEASURED), made))
        assert (len(found.slices), len(found.flows)) == (2, arrows)


def test_a_trace_that_begins_before_zero_is_moved_and_one_without_end_refused() -> None:
    early = Trace(("forward",), (Span("forward", "a", SpanKind.RUN, -5.0, 1.0),), TraceSource.MEASURED)
    assert read(to_perfetto(early)).slices == [("forward", "a", 0, 6000)]
    endless = Trace(("forward",), (Span("forward", "a", SpanKind.RUN, 0.0, 1e308),), TraceSource.MEASURED)
    with pytest.raises(UserError, match="too long to be written in nanoseconds"):
        to_perfetto(endless)


def test_half_a_character_in_a_name_is_shown_by_its_number() -> None:
    odd = Trace(("a\ud800",), (Span("a\ud800", "b\udfff", SpanKind.RUN, 0.0, 1.0),), TraceSource.MEASURED, "\ud800")
    assert read(to_perfetto(odd)).slices == [("a\\ud800", "b\\udfff", 0, 1000)]


def test_without_the_package_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    with pytest.raises(UserError, match=r"pip install 'refimpl\[perfetto\]'"):
        to_perfetto(schedule(overlapped("wait")))
