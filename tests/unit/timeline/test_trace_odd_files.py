"""What no profiler should write and some file will hold: a view or one sentence, never a traceback."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refimpl.program import Span, SpanKind, Trace, TraceSource, UserError
from refimpl.timeline import from_profiler, to_chrome
from refimpl.timeline.reading.columns_in import from_columns
from refimpl.timeline.reports.report import report
from refimpl.timeline.writing.columns import columns

KERNEL = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"stream": 7}}
CALLED = Trace(
    ("host", "forward"),
    (Span("forward", "verify", SpanKind.RUN, 5, 9, None, 1, 3, "cudaGraphLaunch"),),
    TraceSource.MEASURED,
)


def exported(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Our own export of a call and its work, with something odd done to it."""
    data: dict[str, Any] = json.loads(json.dumps(to_chrome(CALLED)))
    change(data)
    return data


def arrows(data: dict[str, Any], **odd: Any) -> None:
    for event in data["traceEvents"]:
        if event["ph"] in "sf":
            event.update(odd)


@pytest.mark.parametrize("identity", [[1], {"a": 1}, None], ids=str)
def test_arrow_whose_id_is_no_word_or_number_joins_nothing(identity: Any) -> None:
    trace = from_profiler(exported(lambda data: arrows(data, id=identity)))
    assert [(s.name, s.submit_us) for s in trace.spans] == [("verify", None)]


def test_arrow_at_a_time_beyond_all_numbers_still_ends_on_its_thread() -> None:
    trace = from_profiler(exported(lambda data: arrows(data, ts=10**400)))
    assert [(s.name, s.submit_us) for s in trace.spans] == [("verify", 1.0)]


@pytest.mark.parametrize("source", [["measured"], {"measured": 1}, 7], ids=str)
def test_source_that_is_no_word_makes_it_another_tools_trace(source: Any) -> None:
    trace = from_profiler(exported(lambda data: data.update(otherData={"source": source})))
    assert {s.kind for s in trace.spans} == {SpanKind.HOST}


def test_own_export_that_begins_before_0_is_moved_there_as_a_whole() -> None:
    def earlier(data: dict[str, Any]) -> None:
        for event in data["traceEvents"]:
            if "ts" in event:
                event["ts"] -= 100

    assert [(s.start_us, s.end_us, s.submit_us, s.ready_us) for s in from_profiler(exported(earlier)).spans] == [
        (4.0, 8.0, 0.0, 2.0)
    ]


def test_columns_that_begin_before_0_are_refused() -> None:
    table = columns(CALLED)
    table["spans"]["submit"] = [-1]
    with pytest.raises(UserError, match=r"'submit' holds -1, which is no time of a run that begins at 0"):
        from_columns(table)


def test_times_of_different_clocks_are_no_run() -> None:
    late = {**KERNEL, "ts": 1.7e18}
    for name in ("the trace", "own export"):
        events = [KERNEL, late] if name == "the trace" else [{**e, "cat": "run"} for e in (KERNEL, late)]
        with pytest.raises(UserError, match=r"goes on for 1\.7e\+18 µs, which is no time of a run"):
            from_profiler({"traceEvents": events, "otherData": {"source": "measured"}})


def test_number_of_thousands_of_digits_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "digits.json"
    file.write_text(json.dumps({"traceEvents": [KERNEL]}).replace("5", "5" * 5000, 1), encoding="utf-8")
    with pytest.raises(UserError, match=r"digits\.json is cut off or not JSON"):
        from_profiler(file)


def test_line_ends_and_figures_that_are_none_do_not_spoil_a_trace(tmp_path: Path) -> None:
    file = tmp_path / "torch.json"
    text = json.dumps({"traceEvents": [{**KERNEL, "name": "a b", "args": {"stream": 7, "occupancy": float("nan")}}]})
    file.write_text(text.replace("a b", "a\nb"), encoding="utf-8")
    assert [s.name for s in from_profiler(file).spans] == ["a\nb"]


def test_threads_of_one_name_have_lanes_of_their_own() -> None:
    def note(thread: int) -> dict[str, Any]:
        place = {"pid": 40, "tid": thread}
        return {"ph": "X", "cat": "user_annotation", "name": "build", "ts": 0, "dur": 5, **place}

    names = [
        {"ph": "M", "name": "thread_name", "pid": 40, "tid": n, "args": {"name": "worker" if n < 4 else "main"}}
        for n in (1, 2, 3, 4)
    ]
    trace = from_profiler({"traceEvents": [*map(note, (4, 4, 1, 2, 3)), *names]})
    assert trace.lanes == ("host", "thread worker (1)", "thread worker (2)", "thread worker (3)")
    assert [one.busy_us for one in report(trace).lanes] == [5.0] * 4


def test_number_of_an_event_is_a_number() -> None:
    sync = {"ph": "X", "cat": "cuda_sync", "name": "Event Sync", "ts": 1, "dur": 3, "pid": 0, "tid": 7}
    held = {"ph": "X", "cat": "cuda_runtime", "name": "cudaEventSynchronize", "ts": 1, "dur": 3, "pid": 4, "tid": 4}
    events = [
        {**sync, "args": {"stream": 7, "correlation": 6, "wait_on_cuda_event_id": True}},
        {**held, "args": {"correlation": 6}},
    ]
    assert [s.name for s in from_profiler({"traceEvents": events}).spans] == ["synchronize(event)"]
