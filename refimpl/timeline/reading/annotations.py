"""The names that profiled code gives to stretches of its time with ``record_function``, and operators alike."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from refimpl.timeline.reading.chrome_file import Event, Thread

LANE = "lane:"
_CONTAINERS = (LANE, "ProfilerStep")


class Annotations:
    """Annotations by thread, each with the one around it.

    Args:
        events: slices of the profiled threads; on one thread they nest.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._threads: dict[Thread, list[Event]] = {}
        self._starts: dict[Thread, list[float]] = {}
        self._parents: dict[Thread, list[int | None]] = {}
        for event in sorted(events, key=lambda e: (e.start, -e.end)):
            self._insert(event)

    def around(self, call: Event | None) -> list[str]:
        """Names of the annotations that enclose a call on its thread, innermost first."""
        if call is None or call.thread not in self._threads:
            return []
        events, parents = self._threads[call.thread], self._parents[call.thread]
        at: int | None = bisect_right(self._starts[call.thread], call.start) - 1
        names = []
        while at is not None and at >= 0:
            if call.end <= events[at].end:
                names.append(events[at].name)
            at = parents[at]
        return names

    def innermost(self) -> list[Event]:
        """Annotations that hold no other, apart from lanes and the profiler's own steps."""
        found = []
        for thread, events in self._threads.items():
            holders = {parent for parent in self._parents[thread] if parent is not None}
            found += [e for k, e in enumerate(events) if k not in holders and not e.name.startswith(_CONTAINERS)]
        return found

    def outermost(self) -> Iterator[Event]:
        """Those that no other encloses."""
        for thread, events in self._threads.items():
            yield from (e for e, parent in zip(events, self._parents[thread], strict=True) if parent is None)

    def named(self) -> set[Thread]:
        """Threads on which at least one annotation names a piece of work."""
        return {
            thread
            for thread, events in self._threads.items()
            if any(not event.name.startswith(_CONTAINERS) for event in events)
        }

    def _insert(self, event: Event) -> None:
        events = self._threads.setdefault(event.thread, [])
        parents = self._parents.setdefault(event.thread, [])
        parent: int | None = len(events) - 1 if events else None
        while parent is not None and events[parent].end < event.end:
            parent = parents[parent]
        events.append(event)
        parents.append(parent)
        self._starts.setdefault(event.thread, []).append(event.start)


def lane_of(names: list[str]) -> str | None:
    """The lane that the innermost ``lane:…`` annotation names."""
    return next((name.removeprefix(LANE) for name in names if name.startswith(LANE)), None)


def own_name(names: list[str]) -> str | None:
    """The innermost annotation that names a piece of work."""
    return next((name for name in names if not name.startswith(_CONTAINERS)), None)
