"""The streams of an engine, each of them a stream of its own."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from refimpl import device as devices

REDRAWS = 64


@dataclass(frozen=True)
class Streams:
    """Who runs what.

    Args:
        schedule_stream: prepares steps and takes memory back: allocators, ``req_to_token``, ``full_to_swa``.
        forward_stream: runs the models, and all that reads or writes K and V.
        copy_stream: takes results to the host; nobody waits for it but the host.
        plan_stream: writes ``req_to_token`` in place of ``schedule_stream``, if so asked.
        fwd_prepare_d2h_stream: takes lengths to the host, if so asked.
    """

    schedule_stream: Any
    forward_stream: Any
    copy_stream: Any
    plan_stream: Any
    fwd_prepare_d2h_stream: Any


def allocate_streams(device: str) -> Streams:
    """Five streams, no two of them the same.

    PyTorch hands out streams from a pool, round robin: two objects can name one stream, which hides every race and
    takes away every overlap.

    Raises:
        RuntimeError: the pool gave no distinct stream.
    """
    drawn: list[Any] = []
    for _ in fields(Streams):
        drawn.append(_distinct(device, drawn))
    return Streams(*drawn)


def another_stream(device: str, streams: Streams) -> Any:
    """A stream that is none of an engine's.

    Raises:
        RuntimeError: the pool gave no distinct stream.
    """
    return _distinct(device, [getattr(streams, field.name) for field in fields(streams)])


def _distinct(device: str, taken: list[Any]) -> Any:
    dev = devices.get(device)
    for _ in range(REDRAWS):
        stream = dev.Stream()
        if stream not in taken:
            return stream
    raise RuntimeError(f"{device}: {REDRAWS} new streams were all among the {len(taken)} in use: free some")
