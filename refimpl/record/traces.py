"""From entries to a trace: when each op of the program ran, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from refimpl.program import Op, Span, SpanKind
from refimpl.record.entries import Entry, Issued, Launched, Stepped
from refimpl.record.names import Names
from refimpl.record.work import HostKind, Kind, Work, one_region


def spans(lowered: Sequence[tuple[Op, Entry]], names: Names, start_us: float) -> list[Span]:
    """The spans of everything that has run, relative to `start_us`."""
    return [span for index, (_, entry) in enumerate(lowered) for span in _spans(entry, index, names, start_us)]


def _spans(entry: Entry, index: int, names: Names, start_us: float) -> Iterator[Span]:
    if isinstance(entry, Stepped):
        step = entry.step
        kind = SpanKind.HOST if step.kind in (HostKind.WORK, HostKind.STAGING) else SpanKind.BLOCKED
        yield Span(
            "host", step.kind.value.replace("_", " "), kind, step.start_us - start_us, step.end_us - start_us, index
        )
    elif isinstance(entry, Issued):
        yield from _runs(entry.works, names.stream(entry.works[0].lane), index, start_us)
    elif isinstance(entry, Launched):
        yield from _runs(entry.works, names.stream(entry.lane), index, start_us)


def _runs(works: Sequence[Work], lane: str, index: int, start_us: float) -> Iterator[Span]:
    group: list[Work] = []
    for work, following in zip_longest(works, works[1:]):
        group.append(work)
        if following is None or not one_region(work, following):
            if work.times is not None and work.times.done:
                yield _span(group, lane, index, start_us)
            group = []


def _span(group: Sequence[Work], lane: str, index: int, start_us: float) -> Span:
    first, last = group[0], group[-1]
    kind = {Kind.RECORD: SpanKind.RECORD, Kind.WAIT: SpanKind.WAIT}.get(first.kind, SpanKind.RUN)
    name = first.region.name if first.region is not None and kind is SpanKind.RUN else first.name
    times = [work.times for work in (first, last) if work.times is not None]
    begin, end, submit = (at - start_us for at in (times[0].start_us, times[-1].end_us, times[0].submit_us))
    return Span(lane, name, kind, begin, end, index, submit)
