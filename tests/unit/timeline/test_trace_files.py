"""What a profiler, other tools and broken disks leave in files: each gives a view or one clear sentence."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from refimpl.program import SpanKind, Trace, TraceSource, UserError
from refimpl.timeline import from_profiler, to_chrome
from refimpl.timeline.reading import chrome_text
from refimpl.timeline.reading.chrome_text import file_items
from refimpl.timeline.reports.report import report
from tests.unit.timeline.recorded import EVENT_SYNC, GRAPH, assert_refused, overlapped, self_fenced


def piece(cat: str, name: str, ts: float, dur: float, pid: Any, tid: Any, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}


def kernel(name: str, ts: float, dur: float, stream: int, correlation: int, pid: int = 0, device: int = 0) -> Any:
    return piece("kernel", name, ts, dur, pid, stream, stream=stream, correlation=correlation, device=device)


def call(name: str, ts: float, dur: float, correlation: int, pid: int = 40, tid: int = 40) -> Any:
    return piece("cuda_runtime", name, ts, dur, pid, tid, correlation=correlation)


def note(name: str, ts: float, dur: float, pid: int = 40, tid: int = 40) -> Any:
    return piece("user_annotation", name, ts, dur, pid, tid)


def named(kind: str, name: str, pid: Any, tid: Any = 0) -> Any:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


def read(*events: Any) -> Trace:
    return from_profiler({"traceEvents": list(events)})


def seen(trace: Trace) -> list[tuple[str, str, str, float, float]]:
    return [(s.lane, s.name, str(s.kind), s.start_us, s.us) for s in trace.spans]


def test_launches_and_blocking_calls_keep_the_runtimes_own_names() -> None:
    trace = read(call(GRAPH, 0, 5, 1), kernel("gemm", 7, 9, 3, 1), call(EVENT_SYNC, 6, 12, 2))
    assert [(s.kind, s.call) for s in trace.spans] == [(SpanKind.BLOCKED, EVENT_SYNC), (SpanKind.RUN, GRAPH)]


def test_streams_of_several_gpus_have_lanes_of_their_own_in_order_of_their_numbers() -> None:
    calls = [call(GRAPH, n, 1, n) for n in range(3)]
    trace = read(
        *calls,
        kernel("far", 5, 9, 7, 0, pid=10, device=10),
        kernel("near", 6, 9, 7, 1, pid=2, device=2),
        kernel("other", 7, 9, 9, 2, pid=2, device=2),
    )
    assert trace.lanes == ("host", "GPU 2 stream 7", "GPU 2 stream 9", "GPU 10 stream 7")


def test_an_annotation_names_a_lane_on_each_gpu() -> None:
    trace = read(
        note("lane:forward", 0, 10),
        *(call(GRAPH, 1 + n, 1, n) for n in range(2)),
        *(kernel("gemm", 20, 5, 7, n, pid=n, device=n) for n in range(2)),
    )
    assert trace.lanes == ("host", "GPU 0 forward", "GPU 1 forward")


def test_work_finds_the_call_of_its_own_process_when_two_count_alike() -> None:
    # Two ranks in one file: each numbers its calls from 1, and each profile calls its own GPU 0.
    def rank(n: int) -> list[Any]:
        calls = [call(GRAPH, n, 2, 1, pid=40 + n), call(GRAPH, n + 50, 3, 2, pid=40 + n)]
        return [*calls, kernel("a", 10, 5, 7, 1, pid=100 + n), kernel("b", 60, 5, 7, 2, pid=100 + n)]

    # What only the second process launched shows which GPU is whose.
    more = [call("cudaLaunchKernel", 70, 1, 3, pid=41), kernel("c", 75, 5, 7, 3, pid=101)]
    trace = read(*rank(0), *rank(1), *more)
    assert trace.lanes == ("host", "GPU 100 stream 7", "GPU 101 stream 7")
    launched = {(s.lane, s.name): s.call for s in trace.spans}
    assert launched["GPU 101 stream 7", "c"] == "cudaLaunchKernel"
    assert [s.submit_us for s in trace.spans if s.lane == "GPU 101 stream 7"] == [1, 51, 70]


def test_threads_of_another_process_say_which() -> None:
    trace = read(
        named("thread_name", "thread 41 (pt_autograd_0)", 40, 41),
        *(call(EVENT_SYNC, 10 * n, 5, n) for n in range(3)),
        call("cudaStreamSynchronize", 1, 2, 9, tid=41),
        call("cudaStreamSynchronize", 2, 2, 9, tid=42),
        call("cudaStreamSynchronize", 3, 2, 9, pid=50, tid=51),
    )
    assert trace.lanes == ("host", "thread 41 (pt_autograd_0)", "thread 42", "process 50 thread 51")


def test_copy_to_pageable_memory_holds_the_host_and_one_to_pinned_memory_does_not() -> None:
    def copies(memory: str) -> list[tuple[str, str, str, float, float]]:
        copy = piece("gpu_memcpy", f"Memcpy DtoH (Device -> {memory})", 20, 5, 0, 7, stream=7, correlation=1)
        return seen(read(call("cudaMemcpyAsync", 0, 26, 1), copy))

    assert ("host", "copy to pageable memory", "blocked", 0, 26) in copies("Pageable")
    assert len(copies("Pinned")) == 1


def test_blocking_call_without_an_annotation_is_named_by_the_outermost_operator_around_it() -> None:
    trace = read(
        piece("cpu_op", "aten::item", 0, 30, 40, 40),
        piece("cpu_op", "aten::_local_scalar_dense", 2, 27, 40, 40),
        call("cudaStreamSynchronize", 5, 20, 1),
    )
    assert seen(trace) == [
        ("host", "aten::item", "host", 0, 5),
        ("host", "synchronize(stream) in aten::item", "blocked", 5, 20),
        ("host", "aten::item", "host", 25, 5),
    ]


def test_operators_are_host_work_only_on_threads_without_annotations() -> None:
    trace = read(
        *(call(GRAPH, n, 1, n) for n in range(3)),
        note("build", 10, 10),
        piece("cpu_op", "aten::add", 12, 2, 40, 40),
        piece("cpu_op", "aten::mul", 12, 2, 40, 41),
    )
    assert seen(trace) == [("host", "build", "host", 0, 10), ("thread 41", "aten::mul", "host", 2, 2)]


def test_slices_in_two_parts_are_paired_by_thread_and_nesting() -> None:
    begins = {"ph": "B", "cat": "user_annotation", "pid": 1, "tid": 1}
    ends = {"ph": "E", "pid": 1, "tid": 1}
    trace = read(
        {**ends, "ts": 0},
        {**begins, "name": "outer", "ts": 1},
        {**begins, "name": "inner", "ts": 2},
        {**ends, "tid": 2, "ts": 3},
        {**ends, "ts": 6},
        {**ends, "ts": 9},
        {**begins, "name": "open", "ts": 9},
    )
    assert seen(trace) == [("host", "inner", "host", 0, 4)]


def test_other_tools_threads_are_lanes_with_the_innermost_slice_at_each_moment() -> None:
    trace = read(
        named("thread_name", "MainThread", 1, 1),
        {"ph": "X", "cat": "FEE", "name": "main", "ts": 10, "dur": 100, "pid": 1, "tid": 1},
        {"ph": "X", "cat": "FEE", "name": "load", "ts": 30, "dur": 20, "pid": 1, "tid": 1},
        {"ph": "X", "name": "zero", "ts": 40, "dur": 0, "pid": 1, "tid": 1},
    )
    assert seen(trace) == [
        ("thread MainThread", "main", "host", 0, 20),
        ("thread MainThread", "load", "host", 20, 10),
        ("thread MainThread", "load", "host", 30, 10),
        ("thread MainThread", "main", "host", 40, 60),
    ]


def test_other_tools_gpu_processes_are_streams() -> None:
    trace = read(
        named("process_name", "/device:GPU:0", 1),
        named("thread_name", "Stream #14", 1, 14),
        {"ph": "X", "name": "fusion", "ts": 5, "dur": 3, "pid": 1, "tid": 14},
        {"ph": "X", "name": "step", "ts": 0, "dur": 9, "pid": 2, "tid": 3},
    )
    assert seen(trace) == [("thread 3", "step", "host", 0, 9), ("Stream #14", "fusion", "run", 5, 3)]


@pytest.mark.parametrize("trace", [self_fenced(), overlapped()], ids=["fenced", "overlapped"])
def test_export_is_read_back_with_calls_and_gives_the_same_report(trace: Trace) -> None:
    again = from_profiler(json.loads(json.dumps(to_chrome(trace))))
    assert set(again.spans) == set(trace.spans)
    assert (again.lanes, again.device, again.source) == (trace.lanes, trace.device, TraceSource.MEASURED)
    assert report(again) == report(trace)


EVENTS = [call(GRAPH, 0, 5, 1), kernel("gemm", 7, 9, 3, 1)]
LIST = json.dumps(EVENTS)


@pytest.mark.parametrize(
    "text", [LIST, LIST[:-1], LIST[:-1] + ",\n", "\ufeff" + LIST, json.dumps({"traceEvents": EVENTS})]
)
def test_array_form_may_stay_open_and_is_read_like_the_object_form(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text, encoding="utf-8")
    assert from_profiler(path) == read(*EVENTS)


def test_gzip_of_several_members_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(LIST[:40].encode()) + gzip.compress(LIST[40:].encode()))
    assert from_profiler(path) == read(*EVENTS)


WHOLE = json.dumps({"traceEvents": EVENTS, "displayTimeUnit": "ms"})


@pytest.mark.parametrize("at", range(1, len(WHOLE) - 1, 7))
def test_object_cut_off_anywhere_is_said_to_be(at: int, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(WHOLE[:at])
    with pytest.raises(UserError, match="is cut off or not JSON") as caught:
        from_profiler(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (gzip.compress(WHOLE.encode())[:-9], "is cut off: its gzip stream does not end"),
        (b"\x1f\x8b\x08\x00" + bytes(range(60)), "is damaged: its gzip stream cannot be unpacked"),
        (b"\x1f\x8b", "is cut off: its gzip stream does not end"),
        (gzip.compress(b""), "is empty"),
        (gzip.compress(b"\x00\xff\xfe garbage"), "is not text"),
        (b"PK\x03\x04 zip", "is cut off or not JSON"),
        (b'"text"', "no chrome trace"),
        (b"17", "no chrome trace"),
        (b"[]", "neither GPU work nor annotations"),
        (WHOLE.encode() + b"}", "is cut off or not JSON"),
        (b'{"traceEvents": {"a": 1}}', "no chrome trace"),
        (b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 0}]}', "in which nothing takes any time"),
        (b"[" * 200_000, "is cut off or not JSON"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_file_that_is_no_trace_gets_one_sentence(raw: bytes, sentence: str, tmp_path: Path) -> None:
    assert_refused(raw, sentence, tmp_path)


def test_file_that_unpacks_to_more_than_fits_is_refused_without_being_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chrome_text, "LIMIT_BYTES", 1 << 20)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(bytes(1 << 25)))
    with pytest.raises(UserError, match="holds more than"):
        list(file_items(path, str(path)))
    path.write_bytes(b"[" + b" " * (1 << 21))
    with pytest.raises(UserError, match="holds more than"):
        list(file_items(path, str(path)))
