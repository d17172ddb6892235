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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from refimpl.program import Span, SpanKind, Trace, TraceSource, UserError
from refimpl.program.ops import LONGEST_US
from refimpl.timeline.crop import shifted
from refimpl.timeline.reading.annotations import Annotations, own_name
from refimpl.timeline.reading.calls import Calls, gpu_of
from refimpl.timeline.reading.chrome_file import (
    CALLS,
    GPU_WORK,
    NOTE,
    OPERATOR,
    Event,
    Profile,
    read_profile,
    source_name,
)
from refimpl.timeline.reading.foreign import from_others
from refimpl.timeline.reading.host_spans import host_spans
from refimpl.timeline.reading.places import HostLanes, Launched, StreamLanes, in_order


def from_profiler(
    source: str | os.PathLike[str] | Mapping[str, Any],
    lanes: Mapping[int, str] | None = None,
    merge_launches: bool = True,
) -> Trace:
    """The kernels, copies, fills, blocking calls and annotations of a ``torch.profiler`` chrome trace.

    GPU work lies on the lane that a ``lane:…`` annotation around its launch names; else on that of its stream, which
    is the given one, the one under which most of the stream's work was launched, or ``"stream 7"``. ``submit_us``
    and ``ready_us`` are the launch call's, and ``call`` is its name. On the host lane lie the calls that block and the
    innermost annotations, the latter without the time that a call in them blocks; a thread without annotations shows
    its outermost operators. Waits of streams are not in it: the profiler's ``Stream Wait Event`` slices have the times
    of the host's call, and do not say which record was taken. With ``enable_cuda_sync_events=True`` a blocking call is
    named by the number of its event.

    A trace of several GPUs or processes has lanes for each: ``"GPU 1 stream 7"``, ``"process 41 thread 43"``;
    ``"host"`` is the thread that makes most calls. A trace that ``to_chrome`` wrote comes back as it was. Of other
    chrome traces each thread is a lane.

    Args:
        source: a ``.json`` or ``.json.gz`` file, or the parsed JSON.
        lanes: names of streams by the number that the profiler gives them.
        merge_launches: one span for all kernels of one launch on one stream, as for a graph; else one a kernel.

    Returns:
        A measured Trace that begins at its first span.

    Raises:
        UserError: the file is missing, empty, cut off, too large, no chrome trace, shows nothing that ran, or
            goes on for longer than any run.

    Example:
        >>> kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 50.0, "dur": 9.0, "args": {"stream": 7}}
        >>> trace = from_profiler({"traceEvents": [kernel]}, lanes={7: "forward"})
        >>> trace.lanes, trace.spans[0].start_us, trace.spans[0].end_us
        (('host', 'forward'), 0.0, 9.0)
    """
    profile, name = read_profile(source), source_name(source)
    if not profile.events and profile.others:
        return _of_a_run(from_others(profile, name), name)
    spans = _Import(profile, lanes or {}, merge_launches).spans()
    if not spans:
        raise UserError(f"{name} shows neither GPU work nor annotations; profile with ProfilerActivity.CUDA")
    return _of_a_run(_trace(spans, profile.device), name)


def _of_a_run(trace: Trace, name: str) -> Trace:
    """The trace, unless its times are so far apart that no sum of them means anything."""
    if not trace.end_us <= LONGEST_US:
        raise UserError(f"{name} goes on for {trace.end_us:g} µs, which is no time of a run")
    return trace


@dataclass
class _Import:
    """One profile on its way to a trace."""

    profile: Profile
    given: Mapping[int, str]
    merge: bool

    def spans(self) -> list[Span]:
        """GPU work, then what the host did."""
        events = self.profile.events
        work = [event for event in events if event.category in GPU_WORK]
        calls = Calls((event for event in events if event.category in CALLS), work)
        notes = Annotations(event for event in events if event.category == NOTE)
        operators = Annotations(event for event in events if event.category == OPERATOR)
        launched = _launched(work, calls, notes, self.merge)
        lanes = StreamLanes(launched, self.given)
        hosts = HostLanes(events, self.profile.threads)
        spans = [_gpu_span(one, lanes.of(one)) for one in launched]
        return [*spans, *host_spans(events, launched, notes, operators, hosts)]


def _launched(work: Iterable[Event], calls: Calls, notes: Annotations, merge: bool) -> list[Launched]:
    """GPU work by launch (or by kernel), in order of time."""
    launches: dict[Any, list[Event]] = {}
    for number, event in enumerate(work):
        one = merge and event.correlation is not None
        key = (gpu_of(event), event.correlation, event.stream) if one else number
        launches.setdefault(key, []).append(event)
    found = []
    for parts in launches.values():
        call = calls.of(parts[0])
        found.append(Launched(parts, call, notes.around(call)))
    return found


def _gpu_span(one: Launched, lane: str) -> Span:
    first = one.work[0]
    name = own_name(one.around) or (_short(first.name) if len(one.work) == 1 else "graph")
    call = one.call
    times = (call.start, call.end, call.name) if call is not None else ()
    return Span(lane, name, SpanKind.RUN, first.start, max(part.end for part in one.work), None, *times)


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


def _trace(spans: list[Span], device: str) -> Trace:
    """The spans in order of time, from 0."""
    ordered = tuple(sorted(spans, key=lambda s: (s.start_us, s.end_us)))
    zero = min(us for s in spans for us in (s.start_us, s.submit_us) if us is not None)
    return shifted(Trace(in_order(s.lane for s in ordered), ordered, TraceSource.MEASURED, device), -zero)
