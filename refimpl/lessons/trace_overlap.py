"""When the loop really ran: a profile on a GPU, the simulated device's own times elsewhere."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from refimpl.fences import VerifyDone
from refimpl.lessons.keep import keep_picture
from refimpl.lessons.overlap import OverlapLoop
from refimpl.program import Span, SpanKind, Trace, label
from refimpl.timeline import from_profiler
from refimpl.view.plot import Picture, compare

STREAMS = ("schedule", "forward", "copy")


def traced(loop: OverlapLoop, fence: VerifyDone | None, host_us: float, steps: int = 10, shown: int = 3) -> Trace:
    """A Trace of ``shown`` steady steps of the loop; recording it slows the host a little, so it is no measurement.

    Args:
        loop: the loop to run.
        fence: the variant of ``verify_done``; None for the un-overlapped control.
        host_us: host work per step, in microseconds.
        steps: iterations to run.
        shown: steps kept, from near the end.
    """

    def run() -> None:
        if fence is None:
            loop.event_loop_normal(steps, host_us)
        else:
            loop.event_loop_overlap(fence, steps, host_us)

    trace = _simulated(loop, run) if loop.device == "sim" else _profiled(loop, run)
    return _window(trace, f"load {steps - shown - 2}", f"load {steps - 2}")


def fences_picture(loop: OverlapLoop, host_us: float) -> Picture:
    """What the device did under ``synchronize`` and ``wait``, on one axis; the landing page shows the committed one."""
    fences = (VerifyDone.SYNCHRONIZE, VerifyDone.WAIT)
    picture = compare({str(fence): traced(loop, fence, host_us) for fence in fences})
    keep_picture("wait-or-synchronize", picture)
    return picture


def _profiled(loop: OverlapLoop, run: Callable[[], None]) -> Trace:
    """A profile; a small kernel under each ``lane:`` annotation tells which stream is which."""
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import ProfilerActivity, profile, record_function

    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    config = _ExperimentalConfig(enable_cuda_sync_events=True)
    with profile(activities=activities, experimental_config=config, acc_events=True) as profiler:
        for name in STREAMS:
            with record_function(f"lane:{name}"), loop.dev.stream(getattr(loop, f"{name}_stream")):
                loop.batch_lens[0].add_(0)
        loop.dev.synchronize()
        run()
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "trace.json")
        profiler.export_chrome_trace(file)
        return from_profiler(file)


def _simulated(loop: OverlapLoop, run: Callable[[], None]) -> Trace:
    from refimpl.record import record

    with record("sim") as recording:
        for name in STREAMS:
            recording.name(getattr(loop, f"{name}_stream"), name)
        for n, event in enumerate(loop.copy_done):
            recording.name(event, f"copy_done {n}")
        run()
        recording.name(loop.verify_done, "verify_done")
    program, trace = recording.program(), recording.trace()

    def named(span: Span) -> Span:
        if span.kind is SpanKind.HOST:
            return replace(span, name="build")
        if span.kind is SpanKind.BLOCKED and span.op is not None:
            return replace(span, name=label(program.ops[span.op]))
        return span

    return replace(trace, spans=tuple(named(span) for span in trace.spans))


def _window(trace: Trace, first: str, last: str) -> Trace:
    """The part of a trace between the starts of two spans, from time zero, on the lanes of the loop."""
    start = next(span.start_us for span in trace.spans if span.name == first)
    end = next(span.start_us for span in trace.spans if span.name == last)
    lanes = ("host", *STREAMS)
    kept = []
    for span in trace.spans:
        if span.lane in lanes and span.end_us >= start and span.start_us <= end and not _is_call(span):
            begin, finish = max(span.start_us, start) - start, min(span.end_us, end) - start
            kept.append(replace(span, start_us=begin, end_us=finish, op=None, submit_us=None, ready_us=None))
    return replace(trace, lanes=lanes, spans=tuple(_merged(kept)))


def _is_call(span: Span) -> bool:
    """Host time of a call that queues work: under a profiler it is long, and it is not the loop's subject."""
    return span.kind is SpanKind.HOST and not span.name.startswith("build")


def _merged(spans: list[Span]) -> list[Span]:
    """Spans of one name that touch on a lane, such as the kernels of one graph, as one."""
    out: list[Span] = []
    last: dict[str, int] = {}
    for span in spans:
        at = last.get(span.lane)
        before = out[at] if at is not None else None
        if before is not None and at is not None and _continues(before, span):
            out[at] = replace(before, end_us=span.end_us)
            continue
        last[span.lane] = len(out)
        out.append(span)
    return out


def _continues(before: Span, span: Span) -> bool:
    same = before.name == span.name and before.kind is span.kind and span.kind is SpanKind.RUN
    return same and span.start_us - before.end_us < 1.0
