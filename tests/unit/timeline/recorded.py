"""Small recorded runs, written by hand and drawn at random, that several tests share."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from refimpl.program import Span, SpanKind, Trace, TraceSource, UserError
from refimpl.timeline import from_profiler

GRAPH = "cudaGraphLaunch"
EVENT_SYNC = "cudaEventSynchronize"


def ran(lane: str, name: str, start: float, end: float, *call: float, by: str = GRAPH) -> Span:
    """Work of a stream; ``call`` is begin and end of the call that queued it."""
    times = call or (None, None)
    return Span(lane, name, SpanKind.RUN, start, end, None, *times, by if call else None)


def held(name: str, start: float, end: float, lane: str = "host", by: str = EVENT_SYNC) -> Span:
    """A call that held a thread of the host."""
    return Span(lane, name, SpanKind.BLOCKED, start, end, call=by)


def worked(name: str, start: float, end: float, lane: str = "host") -> Span:
    """Work of the host."""
    return Span(lane, name, SpanKind.HOST, start, end)


def measured(*spans: Span) -> Trace:
    """A trace of these spans, with the lanes in order of their first spans, the host first."""
    lanes = dict.fromkeys(["host", *(span.lane for span in spans)])
    return Trace(tuple(lanes), spans, TraceSource.MEASURED, "NVIDIA H200")


def self_fenced() -> Trace:
    """Two steps of a loop that holds the host until the GPU is done, and only then builds the next step."""
    return measured(
        worked("build 0", 0, 100),
        ran("forward", "verify 0", 112, 512, 100, 110),
        held("synchronize(verify_done 0)", 110, 516),
        worked("build 1", 516, 616),
        ran("forward", "verify 1", 628, 1028, 616, 626),
        held("synchronize(verify_done 1)", 626, 1032),
    )


def overlapped() -> Trace:
    """The same two steps, where nothing holds the host before the second launch."""
    return measured(
        worked("build 0", 0, 100),
        ran("forward", "verify 0", 112, 512, 100, 110),
        worked("build 1", 110, 210),
        ran("forward", "verify 1", 514, 914, 210, 220),
        held("synchronize(verify_done 1)", 220, 918),
    )


LANES = ("host", "thread 7", "a", "b", "c")


@st.composite
def any_spans(draw: st.DrawFn) -> tuple[Span, ...]:
    """Spans of every kind at any time, whether or not a machine could record them."""
    spans = []
    for _ in range(draw(st.integers(1, 12))):
        lane = draw(st.sampled_from(LANES))
        start, us = draw(st.integers(0, 60)), draw(st.integers(0, 30))
        name = f"{draw(st.sampled_from(['x', 'y']))} {draw(st.integers(0, 9))}"
        if lane in LANES[:2]:
            kind = draw(st.sampled_from([SpanKind.BLOCKED, SpanKind.HOST]))
            spans.append(Span(lane, name, kind, start, start + us))
        else:
            kind = draw(st.sampled_from([SpanKind.RUN, SpanKind.RUN, SpanKind.RUN, SpanKind.WAIT, SpanKind.RECORD]))
            times: tuple[Any, ...] = (None, None)
            if kind is SpanKind.RUN and draw(st.booleans()):
                submit = draw(st.integers(0, 60))
                times = (submit, submit + draw(st.integers(0, 20)))
            spans.append(Span(lane, name, kind, start, start + us, None, *times))
    return tuple(spans)


def profiled(spans: tuple[Span, ...], later: float = 0.0) -> dict[str, Any]:
    """The spans as a profiler would write them: kernels with their launches, calls that block, annotations."""
    events: list[dict[str, Any]] = []
    for number, span in enumerate(spans):
        thread = {"pid": 1, "tid": 7 if span.lane == "thread 7" else 1}
        slice_ = {"ph": "X", "name": span.name, "ts": span.start_us + later, "dur": span.us}
        if span.kind is SpanKind.RUN:
            args = {"stream": LANES.index(span.lane), "device": 0, "correlation": number}
            events.append({**slice_, "cat": "kernel", "pid": 0, "tid": args["stream"], "args": args})
            if span.submit_us is not None and span.ready_us is not None:
                call = {"ts": span.submit_us + later, "dur": span.ready_us - span.submit_us}
                events.append(
                    {**slice_, **call, "cat": "cuda_runtime", "name": GRAPH, "pid": 1, "tid": 1, "args": args}
                )
        elif span.kind is SpanKind.BLOCKED:
            args = {"correlation": number}
            events.append({**slice_, **thread, "cat": "cuda_runtime", "name": EVENT_SYNC, "args": args})
        elif span.kind is SpanKind.HOST:
            events.append({**slice_, **thread, "cat": "user_annotation", "args": {}})
    return {"traceEvents": events}


def assert_refused(raw: bytes, sentence: str, folder: Path) -> None:
    """A file with these bytes is refused in one sentence that names it."""
    path = folder / "bad.json"
    path.write_bytes(raw)
    with pytest.raises(UserError, match=sentence) as caught:
        from_profiler(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
