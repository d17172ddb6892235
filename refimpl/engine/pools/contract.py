"""What all pools check: sizes at construction, and the stream that calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from refimpl import device as devices


def refuse_empty(what: str, **sizes: int) -> None:
    """Raises ValueError if one of the sizes is below 1.

    Args:
        what: Name of what is made of them, for the sentence.
        sizes: By the names of their arguments.
    """
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{what}: {name}={size} leaves it without room, give at least 1")


class Callers:
    """The streams on which a pool may be called.

    A pool's own tables have no fence: what keeps a read and a later write of them apart is that one stream does both.
    So the wrong current stream is a race, and is refused where it happens.

    Args:
        what: Name of the pool, for the sentence.
        device: Where the pool lies; asked for its current stream only if there are streams to compare with.
        streams: The streams allowed; none means that nothing is checked.
    """

    def __init__(self, what: str, device: str, streams: Sequence[Any]) -> None:
        self._what, self._device, self._streams = what, device, tuple(streams)

    def check(self) -> None:
        """Asserts that the current stream is one of them.

        Raises:
            AssertionError: It is another.
        """
        if not self._streams:
            return
        dev = devices.get(self._device)
        assert any(map(dev.is_current, self._streams)), (
            f"{self._what}: called on {dev.current_stream()}, which nothing orders with its tables: call it on "
            f"{self._streams}"
        )
