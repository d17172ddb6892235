"""Which call of the host queued a piece of GPU work."""

from collections import Counter
from collections.abc import Iterable, Sequence

from refimpl.timeline.reading.chrome_file import Event

Gpu = tuple[str, int | None]
"""A GPU as the trace tells it from others: the process that its slices stand under, and its number."""


class Calls:
    """Calls by the number that they share with their work.

    The numbers are a process's own. In a trace of several processes, a GPU's work is of the process that has the most
    of its numbers.

    Args:
        calls: in order of time.
        work: slices of the GPUs.
    """

    def __init__(self, calls: Iterable[Event], work: Sequence[Event]) -> None:
        self._processes: dict[str, dict[int, Event]] = {}
        for call in calls:
            numbered = self._processes.setdefault(call.thread[0], {})
            if call.correlation is not None:
                numbered[call.correlation] = call
        self._owners: dict[Gpu, str] = self._vote(work) if len(self._processes) > 1 else {}

    def of(self, work: Event) -> Event | None:
        """The call that queued it, where the trace has it."""
        if work.correlation is None:
            return None
        owner = self._owners.get(gpu_of(work))
        first = [self._processes[owner]] if owner is not None else []
        for numbered in (*first, *self._processes.values()):
            if work.correlation in numbered:
                return numbered[work.correlation]
        return None

    def _vote(self, work: Sequence[Event]) -> dict[Gpu, str]:
        votes: dict[Gpu, Counter[str]] = {}
        for event in work:
            found = [name for name, numbered in self._processes.items() if event.correlation in numbered]
            votes.setdefault(gpu_of(event), Counter()).update(found)
        return {gpu: counter.most_common(1)[0][0] for gpu, counter in votes.items() if counter}


def gpu_of(work: Event) -> Gpu:
    """The GPU that a piece of work ran on."""
    return work.thread[0], work.device
