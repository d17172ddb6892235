"""Import of torch.profiler traces: lanes, names, submit times, blocking calls, and files that are no traces."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from refimpl.program import SpanKind, TraceSource, UserError
from refimpl.timeline import accounts, crop, from_profiler, stem
from tests.unit.timeline.recorded import assert_refused

T0 = 5_109_979_240_000.0
CPU, GPU = {"pid": 400, "tid": 400}, 0


def piece(cat: str, name: str, ts: float, dur: float, place: dict[str, int], **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": T0 + ts, "dur": dur, **place, "args": args}


def call(name: str, ts: float, dur: float, correlation: int) -> dict[str, Any]:
    return piece("cuda_runtime", name, ts, dur, CPU, cbid=211, correlation=correlation)


def note(name: str, ts: float, dur: float) -> dict[str, Any]:
    return piece("user_annotation", name, ts, dur, CPU)


def work(cat: str, name: str, ts: float, dur: float, stream: int, correlation: int) -> dict[str, Any]:
    place = {"pid": GPU, "tid": stream}
    return piece(cat, name, ts, dur, place, device=0, context=1, stream=stream, correlation=correlation)


def sync(name: str, ts: float, dur: float, stream: int, correlation: int, event: int) -> dict[str, Any]:
    place = {"pid": GPU, "tid": max(stream, 1)}
    known = {"wait_on_cuda_event_record_corr_id": -1, "wait_on_cuda_event_id": event}
    return piece("cuda_sync", name, ts, dur, place, stream=stream, correlation=correlation, **known)


def on_a_gpu() -> dict[str, Any]:
    """A step of an overlapped loop as the profiler writes it: a graph and a copy on stream 20, a gather on 24."""
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150_000_000_000}],
        "displayTimeUnit": "ms",
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 400, "tid": 0, "args": {"name": "python"}},
            note("ProfilerStep#0", 0, 6000),
            note("build 0", 10, 500),
            note("lane:forward", 520, 60),
            note("verify 0", 530, 40),
            call("cudaGraphLaunch", 535, 15, 7),
            {"ph": "s", "id": 7, "cat": "ac2g", "name": "ac2g", "ts": T0 + 535, **CPU},
            {"ph": "f", "id": 7, "cat": "ac2g", "name": "ac2g", "ts": T0 + 560, "pid": GPU, "tid": 20, "bp": "e"},
            work("kernel", "gemm_a", 560, 2000, 20, 7),
            work("kernel", "gemm_b", 2561, 2400, 20, 7),
            call("cudaEventRecord", 585, 2, 8),
            note("lane:schedule", 590, 30),
            call("cudaStreamWaitEvent", 592, 2, 9),
            sync("Stream Wait Event", 593, 2, 24, 9, 3),
            call("cudaLaunchKernel", 600, 7, 10),
            work("kernel", "void gather<long>(long*)", 4962, 8, 24, 10),
            call("cudaMemcpyAsync", 630, 6, 11),
            work("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 4972, 3, 20, 11),
            note("synchronize(copy_done)", 640, 4400),
            call("cudaEventSynchronize", 641, 4395, 12),
            sync("Event Sync", 642, 4393, -1, 12, 24),
            note("process 0", 5050, 100),
            call("cudaStreamSynchronize", 5100, 20, 13),
        ],
    }


def test_work_lies_on_the_lane_that_an_annotation_around_its_launch_names() -> None:
    trace = from_profiler(on_a_gpu())
    assert trace.lanes == ("host", "schedule", "forward")
    assert [s.lane for s in trace.spans if s.kind is SpanKind.RUN] == ["forward", "schedule", "forward"]


def test_stream_takes_its_name_from_the_launches_in_it_and_from_the_caller_before_that() -> None:
    data = on_a_gpu()
    data["traceEvents"] = [e for e in data["traceEvents"] if not e["name"].startswith("lane:")]
    assert from_profiler(data).lanes == ("host", "stream 20", "stream 24")
    assert from_profiler(data, lanes={20: "forward"}).lanes == ("host", "forward", "stream 24")


def test_kernels_of_one_graph_launch_are_one_span_with_the_annotations_name() -> None:
    verify = next(s for s in from_profiler(on_a_gpu()).spans if s.lane == "forward")
    assert (verify.name, verify.us) == ("verify 0", pytest.approx(4401))
    apart = from_profiler(on_a_gpu(), merge_launches=False)
    assert sum(s.lane == "forward" for s in apart.spans) == 3


def test_submit_times_are_those_of_the_launch_call() -> None:
    verify = next(s for s in from_profiler(on_a_gpu()).spans if s.lane == "forward")
    assert (verify.submit_us, verify.ready_us, verify.start_us) == pytest.approx((525, 540, 550))


def test_blocking_calls_are_blocked_spans_named_by_their_annotation() -> None:
    held = [s for s in from_profiler(on_a_gpu()).spans if s.kind is SpanKind.BLOCKED]
    assert [(s.name, s.us) for s in held] == [
        ("synchronize(copy_done)", pytest.approx(4395)),
        ("synchronize(stream) in process 0", pytest.approx(20)),
    ]
    assert accounts(from_profiler(on_a_gpu())).blocked[0].call == "synchronize(copy_done)"


def test_annotations_are_host_work_without_the_time_that_blocks() -> None:
    host = [(s.name, round(s.us)) for s in from_profiler(on_a_gpu()).spans if s.kind is SpanKind.HOST]
    assert host == [("build 0", 500), ("verify 0", 40), ("process 0", 50), ("process 0", 30)]


def test_stream_wait_slices_are_no_waits_since_their_times_are_the_hosts_call() -> None:
    assert not [s for s in from_profiler(on_a_gpu()).spans if s.kind is SpanKind.WAIT]


def test_blocking_call_without_an_annotation_has_the_number_of_its_event() -> None:
    data = on_a_gpu()
    data["traceEvents"] = [e for e in data["traceEvents"] if e["name"] != "synchronize(copy_done)"]
    held = [s.name for s in from_profiler(data).spans if s.kind is SpanKind.BLOCKED]
    assert held[0] == "synchronize(event 24)"
    assert stem(held[0]) == "synchronize(event)"


def test_kernels_are_called_by_their_plain_names() -> None:
    names = [s.name for s in from_profiler(on_a_gpu()).spans if s.kind is SpanKind.RUN]
    assert names == ["verify 0", "gather", "Memcpy DtoH"]


def test_part_of_a_trace_begins_at_zero_and_holds_only_what_ran_then() -> None:
    part = crop(from_profiler(on_a_gpu()), 4900, 5000)
    assert part.lanes == ("host", "schedule", "forward")
    assert [(s.name, round(s.start_us)) for s in part.spans if s.kind is SpanKind.RUN] == [
        ("verify 0", 0),
        ("gather", 52),
        ("Memcpy DtoH", 62),
    ]
    assert crop(from_profiler(on_a_gpu()), 0, 400).lanes == ("host",)


def test_trace_begins_at_zero_and_says_what_it_was_measured_on() -> None:
    trace = from_profiler(on_a_gpu())
    assert min(s.start_us for s in trace.spans) == 0
    assert (trace.source, trace.device) == (TraceSource.MEASURED, "NVIDIA H200")


def test_trace_of_this_process_is_read_back_from_a_compressed_file(tmp_path: Path) -> None:
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        with record_function("build"):
            torch.ones(8, 8) @ torch.ones(8, 8)
        with record_function("process"):
            torch.ones(8)
    profiler.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    trace = from_profiler(tmp_path / "trace.json.gz")
    assert [(s.lane, s.name, s.kind) for s in trace.spans] == [("host", n, SpanKind.HOST) for n in ("build", "process")]


GOOD = json.dumps(on_a_gpu()).encode()


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "is empty"),
        (GOOD[:900], "is cut off or not JSON"),
        (gzip.compress(GOOD)[:200], "is cut off: its gzip stream does not end"),
        (b"\x80\x81\x82", "is not text"),
        (b"[1, 2", "is cut off or not JSON"),
        (b'{"schema": 1, "ops": []}', "no chrome trace"),
        (b'{"traceEvents": []}', "neither GPU work nor annotations"),
        (b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k"}]}', "event 0 is no slice"),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "args": {"stream": "x"}}]}',
            "event 0 is no slice",
        ),
    ],
)
def test_bad_file_gets_one_sentence_that_names_it(raw: bytes, sentence: str, tmp_path: Path) -> None:
    assert_refused(raw, sentence, tmp_path)


KERNEL = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {"stream": 7}}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"dur": -5}, "takes -5.0 microseconds"),
        ({"dur": 1e309}, "takes inf microseconds"),
        ({"ts": float("nan")}, "begins at nan"),
        ({"ts": float("-inf")}, "begins at -inf"),
        ({"ts": 10**400}, "no slice"),
        ({"args": None}, "GPU work on no stream"),
        ({"args": {}}, "GPU work on no stream"),
        ({"args": [7]}, "args are no JSON object"),
        ({"args": {"stream": float("inf")}}, "no slice"),
    ],
    ids=str,
)
def test_slice_that_cannot_be_drawn_gets_one_sentence_that_names_it(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        from_profiler({"traceEvents": [KERNEL, KERNEL | wrong]})
    assert "event 1 is no slice" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_and_directory_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        from_profiler(tmp_path / "none.json")
    with pytest.raises(UserError, match="is a directory"):
        from_profiler(tmp_path)
