"""Chrome traces that are not the profiler's: our own export, read back, and those of other tools."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import inf
from typing import Any

from refimpl.program import Span, SpanKind, Trace, TraceSource, UserError
from refimpl.timeline.crop import shifted
from refimpl.timeline.reading.chrome_file import Event, Profile, Thread
from refimpl.timeline.reading.places import HOST, in_order

_KINDS = frozenset(kind.value for kind in SpanKind)
_CALL, _SUBMIT = "call", "submit"
_MARKS = ("wait", "record")
_MARK_US, _NS = 0.11, 0.0005
"""A mark, which takes no time, is written a little shorter than this; an arrow ends as near as this to its slice."""


def from_others(profile: Profile, name: str) -> Trace:
    """The slices of a trace in which nothing is the profiler's.

    Raises:
        UserError: no slice takes any time.
    """
    told = profile.fields.get("otherData")
    source = told.get("source") if isinstance(told, Mapping) else None
    if isinstance(told, Mapping) and isinstance(source, str) and source in set(TraceSource):
        device = told.get("device")
        return _own(profile, TraceSource(source), device if isinstance(device, str) else "")
    spans = sorted(_foreign(profile), key=lambda s: (s.start_us, s.end_us))
    if not spans:
        raise UserError(f"{name} is a chrome trace in which nothing takes any time")
    lanes = in_order(span.lane for span in spans)
    used = {span.lane for span in spans}
    trace = Trace(tuple(lane for lane in lanes if lane in used), tuple(spans), TraceSource.MEASURED)
    return shifted(trace, -spans[0].start_us)


def _own(profile: Profile, source: TraceSource, device: str) -> Trace:
    """What ``to_chrome`` wrote, with the calls that its arrows lead from."""
    slices, calls = _Slices(profile.others, _KINDS), _Slices(profile.others, {_CALL})
    arrows = [arrow for arrow in profile.arrows if isinstance(arrow.get("id"), str | int | float)]
    begun = {arrow["id"]: arrow for arrow in arrows if arrow.get("ph") == "s"}
    submits: dict[int, Event] = {}
    for arrow in arrows:
        if arrow.get("ph") == "f" and arrow.get("cat") == _SUBMIT and arrow["id"] in begun:
            call, queued = calls.at(begun[arrow["id"]]), slices.at(arrow)
            if call is not None and queued is not None:
                submits[id(queued)] = call
    spans = [_own_span(event, _thread(event, profile), submits.get(id(event))) for event in slices.all]
    lanes = dict.fromkeys([*profile.threads.values(), *(span.lane for span in spans)])
    first = min((us for s in spans for us in (s.start_us, s.submit_us) if us is not None), default=0.0)
    return shifted(Trace(tuple(lanes), tuple(spans), source, device), max(-first, 0.0))


def _own_span(event: Event, lane: str, call: Event | None) -> Span:
    args = event.args or {}
    op, runtime_call = args.get("op"), args.get("call")
    is_mark = event.category in _MARKS and event.end - event.start < _MARK_US
    return Span(
        lane,
        event.name,
        SpanKind(event.category),
        event.end if is_mark else event.start,
        event.end,
        op if isinstance(op, int) else None,
        call.start if call is not None else None,
        call.end if call is not None else None,
        runtime_call if isinstance(runtime_call, str) else None,
    )


class _Slices:
    """Slices of some categories, found by a moment of their thread."""

    def __init__(self, events: Iterable[Event], categories: Collection[str]) -> None:
        self.all = [event for event in events if event.category in categories]
        self._threads: dict[Thread, list[Event]] = {}
        for event in self.all:
            self._threads.setdefault(event.thread, []).append(event)

    def at(self, arrow: Mapping[str, Any]) -> Event | None:
        """The slice in which an arrow begins or ends: of those that are open, the last to start."""
        events = self._threads.get((str(arrow.get("pid")), str(arrow.get("tid"))), [])
        at = bisect_right(events, _moment(arrow) + _NS, key=lambda event: event.start)
        return events[at - 1] if at else None


def _moment(arrow: Mapping[str, Any]) -> float:
    ts = arrow.get("ts")
    try:
        return float(ts) if isinstance(ts, int | float) else 0.0
    except OverflowError:
        return inf


def _thread(event: Event, profile: Profile) -> str:
    return profile.threads.get(event.thread, event.thread[1])


def _foreign(profile: Profile) -> Iterator[Span]:
    threads: dict[Thread, list[Event]] = {}
    for event in profile.others:
        threads.setdefault(event.thread, []).append(event)
    names = _lanes(threads, profile)
    for thread, events in threads.items():
        lane = names[thread]
        kind = SpanKind.RUN if _is_gpu(thread, profile) else SpanKind.HOST
        yield from (Span(lane, name, kind, start, end) for name, start, end in _flat(events) if end > start)


def _is_gpu(thread: Thread, profile: Profile) -> bool:
    return "GPU" in profile.processes.get(thread[0], "").upper()


def _lanes(threads: Iterable[Thread], profile: Profile) -> dict[Thread, str]:
    """A lane for each thread; those that have one name are told apart by their numbers."""
    found: dict[Thread, str] = {}
    several = len({thread[0] for thread in threads if not _is_gpu(thread, profile)}) > 1
    for thread in threads:
        name = profile.threads.get(thread, thread[1])
        if _is_gpu(thread, profile):
            lane = name if name != thread[1] else f"stream {name}"
        else:
            lane = f"thread {name.removeprefix('thread ')}"
            lane = f"process {thread[0]} {lane}" if several else lane
        taken = lane in found.values() or lane == HOST
        found[thread] = f"{lane} ({thread[0]}, {thread[1]})" if taken else lane
    return found


def _flat(events: Iterable[Event]) -> Iterator[tuple[str, float, float]]:
    """The innermost slice at each moment of a thread, by nesting; ``events`` by start, the longer first."""
    stack: list[Event] = []
    at = float("-inf")
    for event in events:
        while stack and stack[-1].end <= event.start:
            done = stack.pop()
            yield done.name, at, done.end
            at = max(at, done.end)
        if stack:
            yield stack[-1].name, at, event.start
        at = event.start
        stack.append(event)
    while stack:
        done = stack.pop()
        yield done.name, at, done.end
        at = max(at, done.end)
