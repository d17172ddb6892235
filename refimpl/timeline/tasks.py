"""Tasks that start when what they come after has ended: the arithmetic under ``schedule``.

Every time is fixed as soon as the times it depends on are. Only a wait for a flag may have to look ahead, since the
write may be issued later; those waits are fixed in the order of their ends, so that no write that is still open
could have come earlier.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count


@dataclass(eq=False, slots=True)
class Task:
    """A stretch of work on the time axis.

    Args:
        floor: it starts no earlier than this, in microseconds.
        us: its duration, in microseconds.
        after: it starts when these have ended.
        until: it ends no earlier than these.
        awaits: the flag that it waits for, or None.
        sets: the flag that its end sets, or None.
    """

    floor: float
    us: float = 0.0
    after: tuple["Task", ...] = ()
    until: tuple["Task", ...] = ()
    awaits: str | None = None
    sets: str | None = None
    start: float = 0.0
    end: float = 0.0
    done: bool = False
    missing: int = 0
    followers: list["Task"] = field(default_factory=list)


class TaskGraph:
    """Tasks in issue order; each is timed as early as it can be.

    Example:
        >>> graph = TaskGraph()
        >>> first = graph.add(Task(0, us=30))
        >>> graph.add(Task(6, us=10, after=(first,))).end
        40
    """

    def __init__(self) -> None:
        self._order = count()
        self._set_at: dict[str, float] = {}
        self._waiting: dict[str, list[Task]] = {}
        self._settled: list[tuple[float, int, Task]] = []

    def add(self, task: Task) -> Task:
        """The task, timed if all that it depends on is."""
        for other in {*task.after, *task.until}:
            if not other.done:
                other.followers.append(task)
                task.missing += 1
        if task.missing == 0:
            self._ready(task)
        return task

    def ends_blocking(self, tasks: Iterable[Task]) -> float | None:
        """When the last of the tasks ends, for a host that issues nothing before; None if one of them never does."""
        tasks = tuple(tasks)
        while not all(task.done for task in tasks):
            if not self._settled:
                return None
            self._settle_earliest()
        return max((task.end for task in tasks), default=0.0)

    def settle(self) -> None:
        """Time all that can still be timed, once the host has issued everything."""
        while self._settled:
            self._settle_earliest()

    def _ready(self, first: Task) -> None:
        stack = [first]
        while stack:
            task = stack.pop()
            task.start = max([task.floor, *(other.end for other in task.after)])
            if task.awaits is None:
                task.end = max([task.start + task.us, *(other.end for other in task.until)])
                stack.extend(self._finish(task))
            else:
                self._waiting.setdefault(task.awaits, []).append(task)
                if task.awaits in self._set_at:
                    self._offer(task, self._set_at[task.awaits])

    def _finish(self, task: Task) -> list[Task]:
        """Mark the task as timed; returns the followers that now can be."""
        task.done = True
        if task.sets is not None and task.end < self._set_at.get(task.sets, float("inf")):
            self._set_at[task.sets] = task.end
            for waiting in self._waiting.get(task.sets, ()):
                self._offer(waiting, task.end)
        for follower in task.followers:
            follower.missing -= 1
        return [follower for follower in task.followers if follower.missing == 0]

    def _offer(self, task: Task, set_at: float) -> None:
        heappush(self._settled, (max(task.start, set_at), next(self._order), task))

    def _settle_earliest(self) -> None:
        end, _, task = heappop(self._settled)
        if task.done:
            return
        task.end = end
        self._waiting[task.awaits or ""].remove(task)
        for follower in self._finish(task):
            self._ready(follower)
