"""Ctrl-C, held back while a turn of the loop runs: what is half prepared could not be taken up again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ctrl_c_afterwards() -> Iterator[None]:
    """Holds the first Ctrl-C back until the block has ended; the second one interrupts whatever runs.

    Python runs signal handlers on the main thread alone: on any other, and where Ctrl-C is handled outside of Python,
    nothing changes.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        before(*held[0])
