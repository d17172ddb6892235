"""Footguns with the host, and with the allocators: memory that is used again before its last use is over."""

import torch

from refimpl import device as devices
from refimpl.lessons.footguns.kit import Footgun, Setting, Values, values
from refimpl.order import Hazard


def pinned_source_reused(at: Setting, fenced: bool) -> Values:
    """The device reads a pinned source when it gets there: until then the host must leave it alone."""
    source, lens = devices.pinned(4, torch.int64, at.device), at.full(0, 0, 0, 0)
    source.fill_(1)
    at.dev.synchronize()
    with at.dev.stream(at.first):
        at.stall()
        lens.copy_(source, non_blocking=True)
        copied = at.dev.Event()
        copied.record()
    if fenced:
        copied.synchronize()
    source.fill_(9)
    return values(lens)


def host_reads_early(at: Setting, fenced: bool) -> Values:
    """A pinned target holds the new values only after the host has synchronized with the copy."""
    lens, target = at.full(7, 7, 7, 7), devices.pinned(4, torch.int64, at.device)
    at.dev.synchronize()
    with at.dev.stream(at.first):
        at.stall()
        target.copy_(lens, non_blocking=True)
        copied = at.dev.Event()
        copied.record()
    if fenced:
        copied.synchronize()
    seen: Values = target.tolist()
    return seen


def freed_while_in_use(at: Setting, fenced: bool) -> Values:
    """The allocator knows the stream a tensor was made on; of a use on another stream it has to be told."""
    at.dev.synchronize()
    with at.dev.stream(at.first):
        draft = torch.ones(4096, dtype=torch.int64, device=at.device)
    at.second.wait_stream(at.first)
    with at.dev.stream(at.second):
        at.stall()
        seen = draft + 0
    if fenced:
        draft.record_stream(at.second)
    del draft
    with at.dev.stream(at.first):
        torch.full((4096,), 9, device=at.device)  # takes the block that was freed
    return values(seen[:4])


MEMORY = (
    Footgun("pinned-source", Hazard.WAR, "The host refills a pinned source too early.", pinned_source_reused, [1] * 4),
    Footgun("host-read", Hazard.RAW, "The host reads a pinned target before the copy.", host_reads_early, [7] * 4),
    Footgun(
        "record-stream", Hazard.LIFETIME, "A freed block is in use on another stream.", freed_while_in_use, [1] * 4
    ),
)
