"""Footguns between two streams: the four hazards' plain forms, and fences that do not fence."""

import torch

from refimpl.lessons.footguns.kit import Footgun, Setting, Values, values
from refimpl.order import Hazard


def read_too_early(at: Setting, fenced: bool) -> Values:
    """RAW: the reader must come after the writer."""
    lens = at.full(1, 1, 1, 1)
    at.dev.synchronize()
    with at.dev.stream(at.first):
        at.stall()
        lens.fill_(7)
    if fenced:
        at.second.wait_stream(at.first)
    with at.dev.stream(at.second):
        seen = lens + 0
    return values(seen)


def overwritten_too_early(at: Setting, fenced: bool) -> Values:
    """WAR: the writer must come after the reader."""
    lens = at.full(1, 1, 1, 1)
    at.dev.synchronize()
    with at.dev.stream(at.first):
        at.stall()
        seen = lens + 0
        read_done = at.dev.Event()
        read_done.record()
    if fenced:
        at.second.wait_event(read_done)
    with at.dev.stream(at.second):
        lens.fill_(7)
    return values(seen)


def overwritten_out_of_turn(at: Setting, fenced: bool) -> Values:
    """WAW: of two writers the later one must come last."""
    lens = at.full(0, 0, 0, 0)
    at.dev.synchronize()
    with at.dev.stream(at.first):
        at.stall()
        lens.fill_(1)
    if fenced:
        at.second.wait_stream(at.first)
    with at.dev.stream(at.second):
        lens.fill_(2)
    return values(lens)


def recorded_too_early(at: Setting, fenced: bool) -> Values:
    """An event holds what its stream held when it was recorded: a write after the record is not behind the fence."""
    lens, written = at.full(1, 1, 1, 1), at.dev.Event()
    at.dev.synchronize()
    with at.dev.stream(at.first):
        written.record()
        at.stall()
        lens.fill_(7)
        if fenced:
            written.record()
    at.second.wait_event(written)
    with at.dev.stream(at.second):
        seen = lens + 0
    return values(seen)


def recorded_again(at: Setting, fenced: bool) -> Values:
    """A second record takes the place of the first: what the event held is gone, also for those who wait later."""
    lens, published = at.full(1, 1, 1, 1), at.dev.Event()
    other = at.dev.Stream()
    at.dev.synchronize()
    with at.dev.stream(at.first):
        at.stall()
        lens.fill_(7)
        published.record()
    if fenced:
        other.wait_event(published)  # the second publisher passes the first one's order on
    published.record(other)
    at.second.wait_event(published)
    with at.dev.stream(at.second):
        seen = lens + 0
    return values(seen)


def waited_before_the_record(at: Setting, fenced: bool) -> Values:
    """A wait binds to what the event holds at the call; an event that was never recorded holds nothing."""
    lens, written = at.full(1, 1, 1, 1), at.dev.Event()
    at.dev.synchronize()
    with at.dev.stream(at.first):
        at.stall()
        lens.fill_(7)
        if fenced:
            written.record()
    at.second.wait_event(written)
    written.record(at.first)
    with at.dev.stream(at.second):
        seen = lens + 0
    return values(seen)


def overlapping_slices(at: Setting, fenced: bool) -> Values:
    """Two slices of one tensor share the bytes in which they overlap."""
    table = at.full(1, 1, 1, 1, 1, 1)
    at.dev.synchronize()
    with at.dev.stream(at.first):
        at.stall()
        table[2:6].fill_(7)
    if fenced:
        at.second.wait_stream(at.first)
    with at.dev.stream(at.second):
        seen = table[0:4] + 0
    return values(seen)


def rows_by_index(at: Setting, fenced: bool) -> Values:
    """Which rows a write touches stands in a tensor on the device; one of them is read on another stream."""
    table = torch.ones(4, 2, dtype=torch.int64, device=at.device)
    # A bare 7 would be copied to the device by a call that blocks the host, which hides the race.
    written, wanted, sevens = at.full(0, 2), at.full(2, 3), at.full(7, 7)
    at.dev.synchronize()
    with at.dev.stream(at.first):
        at.stall()
        table[written] = sevens
    if fenced:
        at.second.wait_stream(at.first)
    with at.dev.stream(at.second):
        seen = table[wanted]
    return values(seen)


STREAMS = (
    Footgun("raw", Hazard.RAW, "A read on another stream comes before the write.", read_too_early, [7] * 4),
    Footgun("war", Hazard.WAR, "A write on another stream comes before the read.", overwritten_too_early, [1] * 4),
    Footgun("waw", Hazard.WAW, "Of two writes on two streams the first lands last.", overwritten_out_of_turn, [2] * 4),
    Footgun("early-record", Hazard.RAW, "The event was recorded before the write.", recorded_too_early, [7] * 4),
    Footgun("re-record", Hazard.RAW, "A second record replaced the one that mattered.", recorded_again, [7] * 4),
    Footgun("unrecorded-wait", Hazard.RAW, "The wait was called before the record.", waited_before_the_record, [7] * 4),
    Footgun("slices", Hazard.RAW, "Two slices of one tensor overlap.", overlapping_slices, [1, 1, 7, 7]),
    Footgun("rows", Hazard.RAW, "A row named by an index tensor is read too early.", rows_by_index, [7, 7, 1, 1]),
)
