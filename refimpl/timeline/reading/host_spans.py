"""What the host's threads did in a profile: calls that blocked, annotated work, operators."""

import re
from collections.abc import Iterable, Sequence

from refimpl.program import Span, SpanKind
from refimpl.timeline.intervals import Overlapping, rest
from refimpl.timeline.reading.annotations import Annotations, own_name
from refimpl.timeline.reading.chrome_file import CALLS, SYNC, Event, Thread
from refimpl.timeline.reading.places import HostLanes, Launched

_HOLDS = re.compile(
    r"^(?:cuda|cu|hip)(?:(Event|Stream|Device|Ctx)Synchronize|Memcpy|MemcpyDtoH|MemcpyWithStream)(?:_v\d+|_ptsz|_ptds)*$"
)
"""Calls that hold the host, in the words of CUDA's and HIP's runtimes and drivers."""
_NAMED_HOLD = "synchronize("
_TO_PAGEABLE = "copy to pageable memory"


def host_spans(
    events: Sequence[Event],
    launched: Iterable[Launched],
    notes: Annotations,
    operators: Annotations,
    lanes: HostLanes,
) -> list[Span]:
    """Blocking calls, and the host's work with the blocking calls cut out of it.

    Args:
        events: the profiler's slices, in order of time.
        launched: GPU work with its calls.
        notes, operators: annotations and operators of the threads.
        lanes: names of the threads' lanes.
    """
    numbers = {e.correlation: e.waited for e in events if e.category == SYNC}
    held: dict[Thread, list[Span]] = {}
    for call, what in [*_synchronizing(events, numbers), *_pageable(launched)]:
        span = Span(
            lanes.of(call.thread),
            _held_name(call, what, notes, operators),
            SpanKind.BLOCKED,
            call.start,
            call.end,
            call=call.name,
        )
        held.setdefault(call.thread, []).append(span)
    named = notes.named()
    work = [note for note in notes.innermost() if not note.name.startswith(_NAMED_HOLD)]
    work += [operator for operator in operators.outermost() if operator.thread not in named]
    return [*(span for spans in held.values() for span in spans), *_between(work, held, lanes)]


def _synchronizing(events: Iterable[Event], numbers: dict[int | None, int | None]) -> list[tuple[Event, str]]:
    """Calls that hold the host by what they are, and what each waits for."""
    found = []
    for event in events:
        match = _HOLDS.match(event.name) if event.category in CALLS else None
        if match is not None:
            what, number = match.group(1), numbers.get(event.correlation)
            numbered = "" if number is None else f" {number}"
            found.append((event, f"synchronize({what.lower()}{numbered})" if what else event.name))
    return found


def _pageable(launched: Iterable[Launched]) -> list[tuple[Event, str]]:
    """Calls that hold the host since they copy to memory that the GPU cannot write by itself."""
    return [
        (one.call, _TO_PAGEABLE)
        for one in launched
        if one.call is not None
        and not _HOLDS.match(one.call.name)
        and any("DtoH" in part.name and "Pageable" in part.name and one.call.end >= part.end for part in one.work)
    ]


def _held_name(call: Event, what: str, notes: Annotations, operators: Annotations) -> str:
    """The annotation that names the call, else what it waits for and where: in an annotation, or in an operator."""
    note = own_name(notes.around(call))
    if note is not None and note.startswith(_NAMED_HOLD):
        return note
    where = note or next(reversed(operators.around(call)), None)
    return what if where is None else f"{what} in {where}"


def _between(work: Iterable[Event], held: dict[Thread, list[Span]], lanes: HostLanes) -> list[Span]:
    """The parts of the host's work in which no call of its thread blocks."""
    by_time = {thread: Overlapping(spans) for thread, spans in held.items()}
    spans = []
    for event in work:
        whole = (event.start, event.end)
        holes = by_time[event.thread].within(whole) if event.thread in by_time else []
        parts = rest([(s.start_us, s.end_us) for s in holes], whole)
        spans += [Span(lanes.of(event.thread), event.name, SpanKind.HOST, *part) for part in parts]
    return spans
