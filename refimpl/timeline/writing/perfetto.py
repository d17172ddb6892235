"""``to_perfetto``: a Trace as Perfetto's own protobuf, with nested tracks and an arrow for every ordering edge."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from types import ModuleType
from typing import Any

from refimpl.program import Program, Trace, UserError
from refimpl.program.ops import LONGEST_US
from refimpl.timeline.ordering import SpanEdge
from refimpl.timeline.reading.places import is_host
from refimpl.timeline.writing.export import Flow, Slice, exported

_SEQUENCE = 1
_ROOT = 1
"""Ids of the one sequence of packets and of the track above all lanes; other tracks count on from the latter."""


def to_perfetto(
    trace: Trace,
    program: Program | None = None,
    edges: Sequence[SpanEdge] | None = None,
    title: str = "Stream Order",
) -> bytes:
    """The trace as a ``.pftrace`` file for ``ui.perfetto.dev``: one track a lane, in order, times in nanoseconds.

    Slices of a lane that overlap, such as the branches of a graph, stand in tracks of the same name, which the viewer
    shows as one. Times are counted from the trace's beginning.

    Args:
        trace: any trace.
        program: adds the ranges that each op reads and writes, its call site, and an arrow for every ordering edge.
        edges: the ordering edges, where they are known without a program.
        title: name of the track above the lanes.

    Raises:
        UserError: the package ``perfetto`` is not installed, or the trace is longer than the format can hold.
    """
    protos = _protos()
    slices, flows = exported(trace, program, edges)
    tracks = _Tracks(trace, _from_zero(slices))
    out = protos.Trace()
    for key, value in (("source", str(trace.source)), ("device", trace.device), ("title", title)):
        out.packet.add().trace_attributes.attribute.add(key=key, string_value=_text(value))
    _describe(out, tracks, title, protos)
    for event in _in_order(tracks.events, _linked(tracks, flows)):
        _put(out, event, protos)
    data: bytes = out.SerializeToString()
    return data


def _protos() -> ModuleType:
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("perfetto", "google"):
            raise
        why = "Perfetto's own format needs the package perfetto: pip install 'refimpl[perfetto]', or write .json"
        raise UserError(f"{why}, which the same viewer opens") from None
    module: ModuleType = perfetto_trace_pb2
    return module


def _from_zero(slices: list[Slice]) -> list[Slice]:
    """The slices, later by as much as the first one lies before zero: the format has no time before that."""
    begin, end = min((s.start for s in slices), default=0.0), max((s.end for s in slices), default=0.0)
    if not end - begin <= LONGEST_US:
        raise UserError(f"the trace goes from {begin:g} to {end:g} µs: that is too long to be written in nanoseconds")
    return slices if begin >= 0 else [replace(s, start=s.start - begin, end=s.end - begin) for s in slices]


@dataclass(eq=False)
class _Event:
    """The beginning or the end of a slice, with the arrows that leave and arrive there."""

    at: int
    track: int
    begins: Slice | None
    leaving: list[int] = field(default_factory=list)
    arriving: list[int] = field(default_factory=list)


class _Tracks:
    """Tracks in which slices do not cut each other, and the two events of each slice."""

    def __init__(self, trace: Trace, slices: list[Slice]) -> None:
        self.lanes = trace.lanes
        self.lane_of: dict[int, str] = {}
        self.events: list[list[_Event]] = []
        """The events of each track, in order; its id is the root's plus one plus its place here."""
        self.begins: dict[int, _Event] = {}
        self.ends: dict[int, _Event] = {}
        by_lane: dict[str, list[int]] = defaultdict(list)
        for number, s in enumerate(slices):
            by_lane[s.lane].append(number)
        for lane in trace.lanes:
            for members in _apart(by_lane[lane], slices, nest=is_host(lane)):
                self._track(lane, members, slices)

    def _track(self, lane: str, members: list[int], slices: list[Slice]) -> None:
        track = _ROOT + 1 + len(self.events)
        self.lane_of[track] = lane
        events: list[_Event] = []
        open_: list[int] = []

        def close(until: int | None) -> None:
            while open_ and (until is None or _ns(slices[open_[-1]].end) <= until):
                number = open_.pop()
                self.ends[number] = _Event(_ns(slices[number].end), track, None)
                events.append(self.ends[number])

        for number in members:
            begin = _ns(slices[number].start)
            close(begin)
            self.begins[number] = _Event(begin, track, slices[number])
            events.append(self.begins[number])
            open_.append(number)
            if _ns(slices[number].end) == begin:
                close(begin)
        close(None)
        self.events.append(events)


def _ns(us: float) -> int:
    return round(us * 1000)


def _apart(members: list[int], slices: list[Slice], nest: bool) -> Iterator[list[int]]:
    """The slices of one lane in as few tracks as it takes: on a host's lane, calls stand inside what makes them; on a
    stream's, nothing inside anything. At least one track, for the lane's name."""
    tracks: list[tuple[list[int], list[int]]] = [([], [])]
    times = {number: (_ns(slices[number].start), _ns(slices[number].end)) for number in members}
    for number in sorted(members, key=lambda number: (times[number][0], _rank(times[number]))):
        begin, end = times[number]
        for _, ends in tracks:
            while ends and ends[-1] <= begin:
                ends.pop()
        free = next((track for track in tracks if not track[1] or (nest and track[1][-1] >= end)), None)
        if free is None:
            free = ([], [])
            tracks.append(free)
        free[0].append(number)
        free[1].append(end)
    return (placed for placed, _ in tracks)


def _rank(times: tuple[int, int]) -> int:
    """Of what begins at once, first what takes no time, which ended before the rest, then the longest."""
    begin, end = times
    return begin - end if end > begin else -(1 << 62)


def _linked(tracks: _Tracks, flows: list[Flow]) -> dict[_Event, list[_Event]]:
    """Numbers the arrows on the events that they join; returns which event each one has to stand before.

    An arrow leads from the end of a slice to the beginning of one that starts after it, or to the end of one that
    waited for it. Viewers follow an arrow in the order of its events.
    """
    followers: dict[_Event, list[_Event]] = defaultdict(list)
    for number, flow in enumerate(flows, 1):
        source, begin = tracks.ends[flow.source], tracks.begins[flow.target]
        target = begin if begin.at >= source.at else tracks.ends[flow.target]
        if source.at > target.at:  # clocks that disagree: the source at least began before
            source = tracks.begins[flow.source]
        if source.at > target.at:
            continue
        source.leaving.append(number)
        target.arriving.append(number)
        if source.at == target.at:
            followers[source].append(target)
    return followers


def _in_order(tracks: list[list[_Event]], followers: dict[_Event, list[_Event]]) -> Iterator[_Event]:
    """All events in order of time; at one time, each track's own order, and no arrow arrives before it left."""
    missing: dict[_Event, int] = defaultdict(int)
    for targets in followers.values():
        for target in targets:
            missing[target] += 1
    following: dict[_Event, list[_Event]] = defaultdict(list)
    for events in tracks:
        for event, after in pairwise(events):
            following[event].append(after)
            missing[after] += 1
    place = {event: number for number, event in enumerate(event for events in tracks for event in events)}
    ready = [(event.at, place[event], event) for event in place if not missing[event]]
    heapify(ready)
    while ready:
        event = heappop(ready)[2]
        yield event
        del place[event]
        for after in (*following[event], *followers.get(event, ())):
            missing[after] -= 1
            if not missing[after]:
                heappush(ready, (after.at, place[after], after))
    yield from sorted(place, key=lambda event: event.at)  # arrows in a circle, at one time: in the tracks' own order


def _describe(out: Any, tracks: _Tracks, title: str, protos: ModuleType) -> None:
    root = out.packet.add(trusted_packet_sequence_id=_SEQUENCE, sequence_flags=1).track_descriptor
    root.uuid, root.name, root.child_ordering = _ROOT, _text(title), protos.TrackDescriptor.EXPLICIT
    for track, lane in tracks.lane_of.items():
        descriptor = out.packet.add(trusted_packet_sequence_id=_SEQUENCE).track_descriptor
        descriptor.uuid, descriptor.parent_uuid = track, _ROOT
        descriptor.name, descriptor.sibling_order_rank = _text(lane), tracks.lanes.index(lane)


def _put(out: Any, event: _Event, protos: ModuleType) -> None:
    packet = out.packet.add(timestamp=event.at, trusted_packet_sequence_id=_SEQUENCE)
    said = packet.track_event
    said.track_uuid = event.track
    said.flow_ids.extend(event.leaving)
    said.terminating_flow_ids.extend(event.arriving)
    if event.begins is None:
        said.type = protos.TrackEvent.TYPE_SLICE_END
        return
    said.type, said.name = protos.TrackEvent.TYPE_SLICE_BEGIN, _text(event.begins.name)
    said.categories.append(event.begins.category)
    for name, value in event.begins.args.items():
        note = said.debug_annotations.add(name=name)
        if isinstance(value, int):
            note.int_value = value
        else:
            note.string_value = _text(str(value))


def _text(text: str) -> str:
    """The text as the format can hold it: half a character, which a name in JSON may be, is shown by its number."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
