"""The pool that streams come from: as in PyTorch there are 32 of each priority, handed out in turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

POOL_SIZE = 32


class StreamPool:
    """Says which stream of the pool is next."""

    def __init__(self) -> None:
        self._taken = {False: 0, True: 0}

    def take(self, high: bool) -> int:
        """The id of the next stream, of high priority or of the usual one; the 33rd is the first again."""
        taken = self._taken[high]
        self._taken[high] = taken + 1
        return 1 + (POOL_SIZE if high else 0) + taken % POOL_SIZE

    @contextmanager
    def kept(self) -> Iterator[None]:
        """What is taken inside is given back at the end, so that runs which begin at one place get the same streams,
        and share none with those that were taken before."""
        taken = dict(self._taken)
        try:
            yield
        finally:
            self._taken = taken
