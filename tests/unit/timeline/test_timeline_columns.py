"""A trace as columns of numbers: what pages draw, and what is read back."""

import json
from dataclasses import replace
from typing import Any

import pytest

from refimpl.program import EventRecord, Launch, Span, SpanKind, StreamWaitEvent, Trace, TraceSource, UserError
from refimpl.timeline import schedule
from refimpl.timeline.ordering import ordering
from refimpl.timeline.reading.columns_in import from_columns
from refimpl.timeline.writing.columns import columns, rounded, steps_of
from tests.unit.timeline.loops import overlapped, program
from tests.view.long_run import long_run

VERIFY = Span("forward", "verify", SpanKind.RUN, 40.0, 90.5, None, 30.0, 34.0004, "cudaGraphLaunch")
BLOCKED = Span("host", "synchronize(done)", SpanKind.BLOCKED, 34.5, 91.0, call="cudaEventSynchronize")
BUILD = Span("host", "build", SpanKind.HOST, 0.0, 30.0)
TRACE = Trace(("host", "plan", "forward"), (VERIFY, BLOCKED, BUILD), TraceSource.MEASURED, "a GPU")


def test_columns_hold_every_field_of_every_span_sorted_by_start() -> None:
    table = columns(TRACE, id="run 1", title="A run", words="Short.")
    assert table == {
        "schema": "trace/1",
        "id": "run 1",
        "title": "A run",
        "words": "Short.",
        "source": "measured",
        "device": "a GPU",
        "lanes": ["host", "plan", "forward"],
        "names": ["build", "synchronize(done)", "verify"],
        "calls": ["cudaEventSynchronize", "cudaGraphLaunch"],
        "spans": {
            "lane": [0, 0, 2],
            "name": [0, 1, 2],
            "kind": [4, 3, 0],
            "start": [0, 34.5, 40],
            "end": [30, 91, 90.5],
            "submit": [None, None, 30],
            "ready": [None, None, 34],
            "call": [-1, 0, 1],
            "op": [-1, -1, -1],
        },
        "edges": {"from": [], "to": [], "kind": [], "kinds": []},
        "steps": [],
    }


def test_spans_that_start_at_once_keep_their_order() -> None:
    twins = [Span("forward", name, SpanKind.RUN, 5.0, 5.0) for name in "cab"]
    assert columns(replace(TRACE, spans=(VERIFY, *twins)))["names"] == ["c", "a", "b", "verify"]


def test_times_are_rounded_to_the_nanosecond_halves_up() -> None:
    assert [rounded(us) for us in (0.0624999, 0.0625, 1.0015, 7.0)] == [0.062, 0.063, 1.002, 7]


def test_edges_join_the_spans_where_they_stand_in_the_columns() -> None:
    fence = (EventRecord(event="e", stream="t"), StreamWaitEvent(event="e", stream="s"))
    made = program(Launch(stream="t", name="late", us=900), Launch(stream="s", name="first", us=1), *fence)
    table = columns(schedule(made), made)
    names = [table["names"][k] for k in table["spans"]["name"]]
    (source,), (target,), (kind,) = (table["edges"][key] for key in ("from", "to", "kind"))
    assert (names[source], names[target]) == ("record(e)", "wait(e)")
    assert table["edges"]["kinds"][kind] == "event"


def test_steps_begin_with_their_first_call_or_with_the_op_that_is_named() -> None:
    made = overlapped("synchronize", steps=3)
    trace = schedule(made)
    build = [s.start_us for s in trace.spans if s.name.startswith("build")]
    verify = [s.start_us for s in trace.spans if s.name.startswith("verify")]
    assert columns(trace, made)["steps"][0] == build[0]
    assert len(columns(trace, made)["steps"]) == 3
    assert columns(trace, step_op="verify")["steps"] == verify
    assert columns(trace, step_op="verify 1")["steps"] == verify[1:2]
    assert columns(trace)["steps"] == columns(trace, step_op="absent")["steps"] == []


def test_the_kernels_of_one_numbered_step_are_one_step() -> None:
    kernels = [Span("forward", f"verify {k // 2}", SpanKind.RUN, 10.0 * k, 10.0 * k + 9) for k in range(6)]
    note = Span("host", "verify 9", SpanKind.HOST, 1.0, 2.0)
    assert steps_of(replace(TRACE, spans=(*kernels, note)), None, "verify") == [0.0, 20.0, 40.0]


def test_kernels_without_numbers_are_of_one_step_by_their_annotation_or_their_launch() -> None:
    def kernel(start: float, submit: float | None) -> Span:
        return Span("forward", "verify", SpanKind.RUN, start, start + 1, None, submit, submit)

    graphs = [kernel(10, 1), kernel(11, 1), kernel(30, 2), kernel(31, 2)]
    assert steps_of(replace(TRACE, spans=tuple(graphs)), None, "verify") == [10, 30]
    eager = [kernel(10, 1), kernel(12, 1.5), kernel(20, 8), kernel(22, 8.5)]
    notes = [Span("host", "verify", SpanKind.HOST, at, at + 2) for at in (0.5, 7.5)]
    assert steps_of(replace(TRACE, spans=(*eager, *notes)), None, "verify") == [10, 20]
    assert steps_of(replace(TRACE, spans=tuple(eager)), None, "verify") == [10, 12, 20, 22]
    assert steps_of(replace(TRACE, spans=(kernel(3, None), kernel(1, None))), None, "verify") == [1, 3]


@pytest.mark.parametrize("fence", ["synchronize", "wait"])
def test_what_is_written_is_read_back(fence: str) -> None:
    made = overlapped(fence)
    trace = schedule(made)
    table = json.loads(json.dumps(columns(trace, made)))
    read, edges = from_columns(table)
    assert sorted(read.spans, key=str) == sorted(trace.spans, key=str)
    assert (read.lanes, read.source, read.device) == (trace.lanes, trace.source, trace.device)
    joined = {(trace.spans[e.source], trace.spans[e.target], e.kind) for e in ordering(trace, made)}
    assert {(read.spans[e.source], read.spans[e.target], e.kind) for e in edges} == joined


def test_a_measured_run_is_read_back_to_the_nanosecond() -> None:
    run = long_run(500)
    read, _ = from_columns(columns(run))
    assert columns(read) == columns(run)
    assert all(abs(a.start_us - b.start_us) < 0.001 for a, b in zip(read.spans, run.spans, strict=True))


def broken(*path: str | int, value: Any) -> dict[str, Any]:
    """The columns with one value changed, or one name missing where the value is None."""
    table: Any = json.loads(json.dumps(columns(TRACE)))
    at = table
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return table  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (broken("schema", value="trace/2"), "schema is 'trace/2'"),
        (broken("steps", value=1e308), "'steps' is 1e\\+308"),
        (broken("steps", value=[0.0, "soon"]), "'steps' holds 'soon'"),
        (broken("steps", value=[None]), "'steps' holds None"),
        (broken("lanes", value=["host", "host"]), "two of its lanes have one name: host, host"),
        (broken("edges", value=None), "has no 'edges'"),
        (broken("spans", "ready", value=None), "has no 'ready'"),
        (broken("spans", "end", value=[1.0]), "'end' does not have 3 entries"),
        (broken("spans", "end", 2, value=3.0), "span 2 begins at 40 and ends at 3.0"),
        (broken("spans", "start", 0, value="soon"), "'start' holds 'soon'"),
        (broken("spans", "start", 0, value=float("nan")), "'start' holds nan"),
        (broken("spans", "end", 2, value=1e300), "'end' holds 1e\\+300"),
        (broken("spans", "ready", 2, value=3), "the call of span 2 begins at 30 and ends at 3"),
        (broken("spans", "lane", 0, value=7), "no lane number 7"),
        (broken("spans", "kind", 0, value=5), "no kind number 5"),
        (broken("spans", "name", 0, value=-1), "no name number -1"),
        (broken("spans", "op", 0, value=0.5), "'op' holds 0.5"),
        (broken("names", value=["a", 1]), "'names' is no list of texts"),
        (broken("source", value="guessed"), "'guessed'"),
        (broken("edges", value={"from": [0], "to": [9], "kind": [0], "kinds": ["event"]}), "from 0 to 9"),
        (broken("edges", value={"from": [], "to": [], "kind": [], "kinds": ["magic"]}), "'magic'"),
        ([], "list"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_table_that_is_none_is_one_sentence_with_the_place(table: Any, why: str) -> None:
    with pytest.raises(UserError, match=why.replace("(", r"\(")) as raised:
        from_columns(table, "file.json")
    assert str(raised.value).startswith("file.json is no recorded run of schema trace/1: ")
