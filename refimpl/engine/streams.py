"""The streams of an engine, each of them a stream of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from refimpl import device as devices

REDRAWS = 64


@dataclass(frozen=True)
class Streams:
    """``schedule_stream``, ``forward_stream``, ``copy_stream`` and ``plan_stream``."""

    schedule_stream: Any
    forward_stream: Any
    copy_stream: Any
    plan_stream: Any


def allocate_streams(device: str) -> Streams:
    """Four streams, no two of them the same.

    PyTorch hands out streams from a pool, round robin: two objects can name one stream, which hides every race and
    takes away every overlap.

    Raises:
        RuntimeError: the pool gave no distinct stream.
    """
    drawn: list[Any] = []
    for _ in range(4):
        drawn.append(_distinct(device, drawn))
    return Streams(*drawn)


def _distinct(device: str, taken: list[Any]) -> Any:
    dev = devices.get(device)
    for _ in range(REDRAWS):
        stream = dev.Stream()
        if stream not in taken:
            return stream
    raise RuntimeError(f"{device}: {REDRAWS} new streams were all among the {len(taken)} in use: free some")
