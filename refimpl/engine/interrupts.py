"""Ctrl-C, held back while a turn of the loop runs: what is half prepared could not be taken up again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

Handler = Callable[[int, FrameType | None], object]


class HeldCtrlC:
    """A block in which the first Ctrl-C waits for its end, or for ``deliver``; the second one interrupts whatever runs.

    Blocks may be nested: the outermost one counts. Python runs signal handlers on the main thread alone: on any other,
    and where Ctrl-C is handled outside of Python or ignored, nothing changes.

    Example:
        >>> from contextlib import suppress
        >>> with suppress(KeyboardInterrupt), HeldCtrlC():
        ...     signal.raise_signal(signal.SIGINT)
        ...     print("the block goes on")
        the block goes on
    """

    def __init__(self) -> None:
        self._depth = 0
        self._before: Handler | None = None
        self._pending: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth += 1
        if self._depth == 1:
            handler = signal.getsignal(signal.SIGINT)
            self._before = handler if callable(handler) else None
            self._arm()

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth == 0 and self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._tell()

    def deliver(self) -> None:
        """Hands on the Ctrl-C that came; Python's own handler raises KeyboardInterrupt here."""
        if self._pending and threading.current_thread() is threading.main_thread():
            self._tell()
            self._arm()

    def _arm(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._hold)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self._pending.append((number, frame))
        signal.signal(signal.SIGINT, self._before)

    def _tell(self) -> None:
        if self._pending and self._before is not None:
            self._before(*self._pending.pop())
