"""Blocking calls that returned to an empty GPU: what the host does behind them, the GPU waits for."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate

from refimpl.program import Span

SOON_US = 10.0
"""Work that ends so soon behind a blocking call is a remainder: the GPU counts as empty."""
_BACK = 8
"""How many blocking calls of a launch are looked at, the last ones."""


class Drains:
    """The blocking calls of a thread, and whether the GPU had work when they returned.

    Args:
        held: the blocking calls.
        work: GPU work; what has no launch call is left out.
    """

    def __init__(self, held: Iterable[Span], work: Iterable[Span]) -> None:
        queued = sorted((s.submit_us, s.end_us) for s in work if s.submit_us is not None)
        self._submits = [submit for submit, _ in queued]
        self._ends = list(accumulate((end for _, end in queued), max))
        self._held = sorted(held, key=lambda s: s.end_us)
        self._returns = [s.end_us for s in self._held]

    def before(self, submit_us: float) -> Span | None:
        """The last of the calls behind which this launch comes late: the GPU was empty when it returned, and it held
        the host for at least as long as the host then took to the launch."""
        at = bisect_right(self._returns, submit_us)
        for held in reversed(self._held[max(at - _BACK, 0) : at]):
            if held.us >= submit_us - held.end_us and self._emptied(held):
                return held
        return None

    def _emptied(self, held: Span) -> bool:
        """Whether all that was submitted before the call returned had ended by then, or nearly."""
        at = bisect_left(self._submits, held.end_us)
        return at == 0 or self._ends[at - 1] <= held.end_us + SOON_US
