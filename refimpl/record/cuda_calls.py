"""PyTorch's calls that order streams of a GPU, overheard: their methods are replaced while a recording is open.

What calls CUDA past these methods is not seen: `torch.Event` and `torch.Stream` without `cuda` in their names, events
and streams in C++, and other libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import _disable_current_modes

Original = Callable[..., Any]


class Hearer(Protocol):
    """Who is told of the calls, after each has been made."""

    def recorded(self, event: Any, stream: Any) -> None:
        """`event.record(stream)`; None is the current stream."""

    def waited(self, event: Any, stream: Any) -> None:
        """`stream` waits for `event`; None is the current stream."""

    def joining(self, on: bool) -> None:
        """A `wait_stream` begins or ends: the event in between is nobody's."""

    def synchronized(self, event: Any = None, stream: Any = None) -> None:
        """The host was blocked: for an event, a stream, or else the device."""

    def asked(self, success: bool, event: Any = None, stream: Any = None) -> None:
        """The host asked an event or a stream."""

    def capture_began(self, graph: Any) -> None:
        """A capture began on the current stream."""

    def capture_ended(self, graph: Any) -> None:
        """The capture ended well."""

    def capture_failed(self, graph: Any) -> None:
        """The capture ended in an error, or the graph was reset."""

    def launching(self, graph: Any) -> None:
        """A graph is about to be launched on the current stream; raises if nothing is known of it."""

    def graph_launched(self, graph: Any) -> None:
        """The graph was launched."""


@contextmanager
def overheard(hearer: Hearer) -> Iterator[None]:
    """Tells `hearer` of every such call made inside."""
    cuda: Any = torch.cuda
    with ExitStack() as stack:
        for owner, name, make in (
            (cuda.Event, "record", _record),
            (cuda.Event, "wait", _wait),
            (cuda.Event, "synchronize", _event_synchronize),
            (cuda.Event, "query", _event_query),
            (cuda.Stream, "wait_stream", _wait_stream),
            (cuda.Stream, "synchronize", _stream_synchronize),
            (cuda.Stream, "query", _stream_query),
            (cuda, "synchronize", _device_synchronize),
            (cuda.CUDAGraph, "capture_begin", _capture_begin),
            (cuda.CUDAGraph, "capture_end", _capture_end),
            (cuda.CUDAGraph, "reset", _reset),
            (cuda.CUDAGraph, "replay", _replay),
        ):
            stack.enter_context(_replaced(owner, name, make, hearer))
        yield


@contextmanager
def _replaced(owner: Any, name: str, make: Callable[[Original, Hearer], Original], hearer: Hearer) -> Iterator[None]:
    own = name in vars(owner)
    original = getattr(owner, name)
    setattr(owner, name, wraps(original)(make(original, hearer)))
    try:
        yield
    finally:
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)


def _record(original: Original, hearer: Hearer) -> Original:
    def record(self: Any, stream: Any = None) -> None:
        original(self, stream)
        hearer.recorded(self, stream)

    return record


def _wait(original: Original, hearer: Hearer) -> Original:
    def wait(self: Any, stream: Any = None) -> None:
        original(self, stream)
        hearer.waited(self, stream)

    return wait


def _event_synchronize(original: Original, hearer: Hearer) -> Original:
    def synchronize(self: Any) -> None:
        original(self)
        hearer.synchronized(event=self)

    return synchronize


def _event_query(original: Original, hearer: Hearer) -> Original:
    def query(self: Any) -> bool:
        success = bool(original(self))
        hearer.asked(success, event=self)
        return success

    return query


def _wait_stream(original: Original, hearer: Hearer) -> Original:
    def wait_stream(self: Any, stream: Any) -> None:
        hearer.joining(True)
        try:
            original(self, stream)
        finally:
            hearer.joining(False)

    return wait_stream


def _stream_synchronize(original: Original, hearer: Hearer) -> Original:
    def synchronize(self: Any) -> None:
        original(self)
        hearer.synchronized(stream=self)

    return synchronize


def _stream_query(original: Original, hearer: Hearer) -> Original:
    def query(self: Any) -> bool:
        success = bool(original(self))
        hearer.asked(success, stream=self)
        return success

    return query


def _device_synchronize(original: Original, hearer: Hearer) -> Original:
    def synchronize(device: Any = None) -> None:
        original(device)
        hearer.synchronized()

    return synchronize


def _capture_begin(original: Original, hearer: Hearer) -> Original:
    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> None:
        with _disable_current_modes():  # PyTorch fills the graph's own seed and offset
            original(self, *args, **kwargs)
        hearer.capture_began(self)

    return capture_begin


def _capture_end(original: Original, hearer: Hearer) -> Original:
    def capture_end(self: Any) -> None:
        try:
            original(self)
        except BaseException:
            hearer.capture_failed(self)
            raise
        hearer.capture_ended(self)

    return capture_end


def _reset(original: Original, hearer: Hearer) -> Original:
    def reset(self: Any) -> None:
        original(self)
        hearer.capture_failed(self)

    return reset


def _replay(original: Original, hearer: Hearer) -> Original:
    def replay(self: Any) -> None:
        hearer.launching(self)
        with _disable_current_modes():
            original(self)
        hearer.graph_launched(self)

    return replay
