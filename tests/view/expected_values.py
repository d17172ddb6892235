"""What a racing read finds, byte by byte, and where the component says something else."""

from collections.abc import Iterator
from typing import Any

from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline.intervals import Interval
from tests.view.expected_order import Order, Said

NEAR = 1e-6


def wrong_reads_differ(said: Said, order: Order, trace: Trace) -> Iterator[str]:
    """Every byte of every racing read, looked at one by one: who should have left it, and who did."""
    time = {name: (start, end) for name, start, end in said["accessors"]}
    drawn = _drawn(order, trace)
    for name, (start, end) in drawn.items():
        if name in time and max(abs(time[name][0] - start), abs(time[name][1] - end)) > NEAR:
            yield f"value: {name} runs at {drawn[name]}, not {time[name]}"
    steps = [order.graph.steps[index] for index in sorted(order.runs & order.label.keys())]
    writers: dict[tuple[str, int], list[str]] = {}
    for step in steps:
        for memory, r in step.writes:
            for byte in _bytes(r):
                writers.setdefault((memory, byte), []).append(order.label[step.index])
    racing = {name for pair in said["near"] for name in (said["name"][pair[0]], said["name"][pair[1]])}
    place = {order.label[step.index]: k for k, step in enumerate(steps)}
    here = {(w["reader"], tuple(w["range"].get(f) for f in ("buf", "off", "len"))): w for w in said["wrong"]}
    for step in steps:
        name = order.label[step.index]
        for memory, r in step.reads if name in racing else ():
            told = here.get((name, (r.buf, r.off, r.len)))
            first = None
            for byte in sorted(_bytes(r)):
                got, want = _found(name, writers.get((memory, byte), []), place, time)
                if got != want:
                    first = (byte, got, want)
                    break
            if (told and (told["bytes"]["off"], told["got"], told["want"])) != first and not _twice(step.reads, r):
                yield f"value: {name} finds {first} in {r}, not {told}"


def _twice(reads: tuple[tuple[str, Any], ...], r: Any) -> bool:
    return sum(q[:3] == r[:3] for _, q in reads) > 1


def _drawn(order: Order, trace: Trace) -> dict[str, Interval]:
    """When the ops that touch memory ran, by the trace; the parts of an op stand in the same order there."""
    spans: dict[int, list[Span]] = {}
    for span in trace.spans:
        if span.kind is SpanKind.RUN or (span.kind is SpanKind.HOST and span.op is not None):
            spans.setdefault(span.op or 0, []).append(span)
    found: dict[str, Interval] = {}
    for step in order.graph.steps:
        part = order.label.get(step.index, "")
        if part.endswith((" device", " agent")) and step.op in spans:
            found[part] = (spans[step.op][0].start_us, spans[step.op][0].end_us)
    return found


def _found(
    name: str, writers: list[str], place: dict[str, int], time: dict[str, Interval]
) -> tuple[str | None, str | None]:
    """Who left a byte that is read, and who should have."""
    start, end = time[name]
    others = [w for w in writers if w != name]
    want = max((w for w in others if place[w] < place[name]), key=lambda w: place[w], default=None)
    torn = [w for w in others if place[w] > place[name] and time[w][0] < end - NEAR and time[w][1] > start + NEAR]
    if torn:
        return min(torn, key=lambda w: place[w]), want
    done = [w for w in others if time[w][1] <= start + NEAR]
    return max(done, key=lambda w: (time[w][1], place[w]), default=None), want


def _bytes(r: Any) -> set[int]:
    return {r.off + row * r.stride + k for row in range(r.rows) for k in range(r.len)}
