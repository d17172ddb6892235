"""``from_profiler``: a trace that ``torch.profiler`` exported, as a Trace.

Convention for names, in the profiled code::

    with record_function("lane:forward"):      # work launched in here is of the lane "forward"
        with record_function("verify 0"):      # and its span is called "verify 0"
            graph.replay()
    with record_function("build"):             # host work
        ...
    with record_function("synchronize(verify_done)"):  # names the call in it that blocks
        event.synchronize()
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from refimpl.program import Span, SpanKind, Trace, TraceSource, UserError
from refimpl.timeline.annotations import Annotations, lane_of, own_name
from refimpl.timeline.chrome_file import GPU_WORK, Event, device_name, read_events, source_name
from refimpl.timeline.crop import shifted
from refimpl.timeline.intervals import Interval, Overlapping, rest

_CALLS = ("cuda_runtime", "cuda_driver", "hip_runtime")
_HOLDS = re.compile(
    r"^(?:cuda|cu|hip)(?:(Event|Stream|Device|Ctx)Synchronize|Memcpy|MemcpyDtoH)(?:_v\d+|_ptsz|_ptds)*$"
)
"""Calls that hold the host, in the words of CUDA's and HIP's runtimes and drivers."""
_NAMED_HOLD = "synchronize("
_FIRST = ("host", "schedule", "plan", "forward", "copy")


def from_profiler(
    source: str | os.PathLike[str] | Mapping[str, Any],
    lanes: Mapping[int, str] | None = None,
    merge_launches: bool = True,
) -> Trace:
    """The kernels, copies, fills, blocking calls and annotations of a ``torch.profiler`` chrome trace.

    GPU work lies on the lane that a ``lane:…`` annotation around its launch names; else on that of its stream, which
    is the given one, the one under which most of the stream's work was launched, or ``"stream 7"``. ``submit_us``
    and ``ready_us`` are the launch call's. On the host lane lie the calls that block and the innermost annotations,
    the latter without the time that a call in them blocks. Waits of streams are not in it: the profiler's
    ``Stream Wait Event`` slices have the times of the host's call, and do not say which record was taken. With
    ``enable_cuda_sync_events=True`` a blocking call is named by the number of its event.

    Args:
        source: a ``.json`` or ``.json.gz`` file, or the parsed JSON.
        lanes: names of streams by the number that the profiler gives them.
        merge_launches: one span for all kernels of one launch on one stream, as for a graph; else one a kernel.

    Returns:
        A measured Trace that begins at its first span.

    Raises:
        UserError: the file is missing, empty, cut off, no chrome trace, or shows neither GPU work nor annotations.

    Example:
        >>> kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 50.0, "dur": 9.0, "args": {"stream": 7}}
        >>> trace = from_profiler({"traceEvents": [kernel]}, lanes={7: "forward"})
        >>> trace.lanes, trace.spans[0].start_us, trace.spans[0].end_us
        (('host', 'forward'), 0.0, 9.0)
    """
    events, data = read_events(source)
    notes = Annotations(event for event in events if event.category == "user_annotation")
    calls = {event.correlation: event for event in events if event.category in _CALLS and event.correlation is not None}
    work = [event for event in events if event.category in GPU_WORK]
    names = _lane_names(work, calls, notes, lanes or {})
    spans = [*_gpu_spans(work, calls, notes, names, merge_launches), *_host_spans(events, notes)]
    if not spans:
        raise UserError(
            f"{source_name(source)} shows neither GPU work nor annotations; profile with ProfilerActivity.CUDA"
        )
    return _trace(spans, device_name(data))


def _lane_names(
    work: list[Event], calls: Mapping[int, Event], notes: Annotations, given: Mapping[int, str]
) -> dict[int | None, str]:
    votes: dict[int | None, Counter[str]] = {}
    for event in work:
        lane = lane_of(notes.around(_call_of(event, calls)))
        votes.setdefault(event.stream, Counter()).update([lane] if lane else [])
    names = {stream: c.most_common(1)[0][0] if c else f"stream {stream}" for stream, c in votes.items()}
    names.update(given.items())
    return names


def _call_of(event: Event, calls: Mapping[int, Event]) -> Event | None:
    return calls.get(event.correlation) if event.correlation is not None else None


def _gpu_spans(
    work: list[Event], calls: Mapping[int, Event], notes: Annotations, names: Mapping[int | None, str], merge: bool
) -> list[Span]:
    """One span a launch (or a kernel), on its lane, with the times of its call."""
    launches: dict[Any, list[Event]] = {}
    for number, event in enumerate(work):
        one = merge and event.correlation is not None
        launches.setdefault((event.correlation, event.stream) if one else number, []).append(event)
    return [_gpu_span(parts, _call_of(parts[0], calls), notes, names) for parts in launches.values()]


def _gpu_span(parts: list[Event], call: Event | None, notes: Annotations, names: Mapping[int | None, str]) -> Span:
    first, around = parts[0], notes.around(call)
    lane = lane_of(around) or names[first.stream]
    name = own_name(around) or (_short(first.name) if len(parts) == 1 else "graph")
    times = (call.start, call.end) if call is not None else (None, None)
    return Span(lane, name, SpanKind.RUN, first.start, max(part.end for part in parts), None, *times)


def _short(name: str) -> str:
    """A kernel's name without its return type, namespaces and arguments; a copy's without its explanation.

    Example:
        >>> _short("void at::(anonymous namespace)::gather<2, Sum<long> >(int)"), _short("Memcpy DtoH (Device -> Host)")
        ('gather', 'Memcpy DtoH')
    """
    plain = name.replace("(anonymous namespace)::", "")
    head = re.split(r"[<(]", plain, maxsplit=1)[0].strip()
    if name.startswith(("Memcpy", "Memset")):
        return head
    return head.split("::")[-1].split(" ")[-1] or name


def _host_spans(events: list[Event], notes: Annotations) -> list[Span]:
    """Blocking calls, and the innermost annotations with the blocking calls cut out of them."""
    main = _main_thread(events)
    held: dict[Any, list[Span]] = {}
    numbers = {e.correlation: e.args.get("wait_on_cuda_event_id") for e in events if e.category == "cuda_sync"}
    for e in events:
        if e.category in _CALLS and _HOLDS.match(e.name):
            name = _held_name(e, notes, numbers.get(e.correlation))
            blocked = Span(_host_lane(e, main), name, SpanKind.BLOCKED, e.start, e.end)
            held.setdefault(e.thread, []).append(blocked)
    spans = [span for blocked in held.values() for span in blocked]
    by_time = {thread: Overlapping(blocked) for thread, blocked in held.items()}
    for note in notes.innermost():
        if not note.name.startswith(_NAMED_HOLD):
            whole = (note.start, note.end)
            holes = by_time[note.thread].within(whole) if note.thread in by_time else []
            spans += [_host_span(note, part, main) for part in rest([(s.start_us, s.end_us) for s in holes], whole)]
    return spans


def _host_span(note: Event, part: Interval, main: Any) -> Span:
    return Span(_host_lane(note, main), note.name, SpanKind.HOST, *part)


def _main_thread(events: Iterable[Event]) -> Any:
    """The thread that makes most of the calls, or else has most of the annotations."""
    counts = Counter(e.thread for e in events if e.category in _CALLS) or Counter(
        e.thread for e in events if e.category == "user_annotation"
    )
    return counts.most_common(1)[0][0] if counts else None


def _host_lane(event: Event, main: Any) -> str:
    return "host" if event.thread == main else f"thread {event.thread[1]}"


def _held_name(event: Event, notes: Annotations, number: object) -> str:
    """The annotation that names the call, else the call with its event's number or the annotation that it stands in."""
    around = own_name(notes.around(event))
    if around is not None and around.startswith(_NAMED_HOLD):
        return around
    match = _HOLDS.match(event.name)
    what = (match.group(1) or "").lower() if match else ""
    call = f"synchronize({what}{'' if number is None else f' {number}'})" if what else event.name
    return call if around is None else f"{call} in {around}"


def _trace(spans: list[Span], device: str) -> Trace:
    """The spans in order of time, from 0."""
    used = dict.fromkeys(["host", *(s.lane for s in sorted(spans, key=lambda s: s.start_us))])
    lanes = (*(lane for lane in _FIRST if lane in used), *(lane for lane in used if lane not in _FIRST))
    zero = min(us for s in spans for us in (s.start_us, s.submit_us) if us is not None)
    ordered = sorted(spans, key=lambda s: (s.start_us, s.end_us))
    return shifted(Trace(lanes, tuple(ordered), TraceSource.MEASURED, device), -zero)
