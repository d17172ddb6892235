"""What `with` takes: a stream to issue on, a schedule to run under."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from refimpl.device.simulator.runs import under
from refimpl.device.simulator.schedules.run import Run
from refimpl.device.simulator.schedules.runner import Schedule
from refimpl.device.simulator.streams import Stream, stream_of


class StreamContext:
    """Makes `stream` the current stream inside; None changes nothing.

    Args:
        stream: The stream.
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            stream_of(self.stream).__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            self.stream.__exit__(*error)


class ScheduleContext:
    """Runs what is issued inside under `schedule`; each use is a run of its own.

    Args:
        schedule: The schedule.
    """

    def __init__(self, schedule: Schedule) -> None:
        if isinstance(schedule, type) or not hasattr(schedule, "start") or not hasattr(schedule, "costs"):
            raise TypeError(f"sim: schedule({schedule!r}): use Timed(), Adversary(seed=3) or Replay(run.id)")
        self._schedule = schedule
        self._open: list[AbstractContextManager[Run]] = []

    def __enter__(self) -> Run:
        opened = under(self._schedule)
        run = opened.__enter__()
        self._open.append(opened)
        return run

    def __exit__(self, *error: Any) -> bool | None:
        return self._open.pop().__exit__(*error)
