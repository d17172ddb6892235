"""Who is told what a device cannot tell: named regions, host work, stalls and launches that no operator shows.

On `sim` the device's observers are told of all this. On `cuda` it is calls of ours that PyTorch does not see.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refimpl.device.stated import Statement


class Listener:
    """Looks on at the calls of this room on `cuda`; subclass it and override what you need."""

    def region(self, name: str) -> AbstractContextManager[object]:
        """What is issued inside has a name."""
        return nullcontext()

    def worked(self, us: float) -> None:
        """The host was busy for `us`."""

    def slept(self, us: float) -> None:
        """The current stream was stalled for `us`."""

    def launched(self, statement: Statement) -> None:
        """A launch that no operator shows was issued on the current stream."""


_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tells `listener` of the calls made inside."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def named(name: str) -> AbstractContextManager[object]:
    """A region of this name, for all who listen; nothing where nobody does."""
    return _regions(name) if _listeners else nullcontext()


@contextmanager
def _regions(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        for listener in _listeners:
            stack.enter_context(listener.region(name))
        yield


def worked(us: float) -> None:
    """Tells that the host was busy."""
    for listener in _listeners:
        listener.worked(us)


def slept(us: float) -> None:
    """Tells that the current stream was stalled."""
    for listener in _listeners:
        listener.slept(us)


def launched(statement: Statement) -> None:
    """Tells of a launch that no operator shows."""
    for listener in _listeners:
        listener.launched(statement)
