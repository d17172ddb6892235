"""Looks on at a scheduler's loop from outside: when its steps begin, how long the host stands still, when the device
idles.

The scheduler's own methods are wrapped while a run is observed, and put back afterwards, so what is timed is the loop
that everybody runs. No profiler is attached.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any
from unittest.mock import patch

from refimpl import device as devices
from refimpl.engine.forward_batch import ForwardBatch
from refimpl.engine.scheduler import Scheduler

Note = Callable[[float], None]
"""Takes a time in microseconds."""
MARKED_STEPS = 4096
"""Steps of one run that get marks on the device; the events are made before the run."""


@dataclass
class Beat:
    """One iteration of the loop in which a forward was launched.

    Args:
        begin_us: host clock when it began.
        blocked_us: host time in calls that block, until the next began.
        blocked_before_us: of it, before the forward was launched.
        launch_us: host time from the beginning to the launch.
        added_us: host work that the benchmark added.
        batch: what the worker was given.
        begun, ended: events around its work on the forward stream, if they were asked for.
    """

    begin_us: float
    blocked_us: float = 0.0
    blocked_before_us: float = 0.0
    launch_us: float = 0.0
    added_us: float = 0.0
    batch: ForwardBatch | None = None
    begun: Any = None
    ended: Any = None

    def decodes(self, batch_size: int) -> bool:
        """Whether it launched a decode of this many requests."""
        return (
            self.batch is not None and not self.batch.forward_mode.is_extend() and self.batch.batch_size == batch_size
        )


@dataclass(frozen=True)
class Step:
    """One steady decode.

    Args:
        us: from its beginning to that of the next, by the host's clock.
        blocked_us, added_us: of these, in calls that block; and in work that the benchmark added.
        blocked_before_us, launch_us: of blocked_us, before the launch of its forward; and from its beginning to there.
        device_us: from the begin of its work on the forward stream to that of the next; None without marks.
        idle_us: of device_us, from the end of its work to the begin of the next decode's; None without marks.
    """

    us: float
    blocked_us: float
    blocked_before_us: float
    launch_us: float
    added_us: float
    device_us: float | None
    idle_us: float | None

    @property
    def host_us(self) -> float:
        """What the host did but stand still: the engine's own work, and what was added."""
        return self.us - self.blocked_us


@dataclass
class Watch:
    """What was seen of a run.

    Args:
        beats: iterations that launched a forward, in order.
        end_us: host clock when the run ended.
    """

    beats: list[Beat] = field(default_factory=list)
    end_us: float = 0.0

    def steady(self, batch_size: int, skip: int = 4) -> list[Step]:
        """Decodes of this many requests between two such decodes, without the first few of each stretch.

        Args:
            batch_size: requests that decode.
            skip: decodes left out after a prefill or another batch size.
        """
        steps, stretch = [], 0
        for before, now, after in zip(self.beats, self.beats[1:], self.beats[2:], strict=False):
            whole = all(beat.decodes(batch_size) for beat in (before, now, after))
            stretch = stretch + 1 if whole else 0
            if stretch > skip:
                steps.append(_step(now, after))
        return steps

    def middle_decode(self, batch_size: int) -> ForwardBatch:
        """The batch of the decode of this many requests in the middle of the run: of average length.

        Raises:
            ValueError: there was none.
        """
        batches = self._decodes(batch_size)
        return batches[len(batches) // 2]

    def last_decode(self, batch_size: int) -> ForwardBatch:
        """The batch of the last decode of this many requests.

        Raises:
            ValueError: there was none.
        """
        return self._decodes(batch_size)[-1]

    def _decodes(self, batch_size: int) -> list[ForwardBatch]:
        batches = [beat.batch for beat in self.beats if beat.batch is not None and beat.decodes(batch_size)]
        if not batches:
            raise ValueError(f"no decode of {batch_size} requests was seen: ask for more new tokens")
        return batches


class _Observer:
    """Notes what the wrapped methods tell; one for a run."""

    def __init__(
        self, scheduler: Scheduler, marks: bool, host_work_us: float, schedule_work: Callable[[Note], object]
    ) -> None:
        self.device, self.host_work_us, self.schedule_work = scheduler.device, host_work_us, schedule_work
        self.watch = Watch()
        dev = devices.get(self.device)
        self._events = [dev.Event(enable_timing=True) for _ in range(2 * MARKED_STEPS)] if marks else []
        self._now = Beat(devices.host_clock_us(self.device))

    def iteration_begins(self, *_: Any) -> None:
        self._now = Beat(devices.host_clock_us(self.device))
        if self.host_work_us > 0:
            devices.host_work(self.device, self.host_work_us)
            self._now.added_us = devices.host_clock_us(self.device) - self._now.begin_us
        self.schedule_work(self.blocked)

    def forward_begins(self, *_: Any) -> None:
        self._now.begun = self._mark()

    def launched(self, batch: ForwardBatch, *_: Any) -> None:
        self._now.batch = batch
        self._now.launch_us = devices.host_clock_us(self.device) - self._now.begin_us
        self.watch.beats.append(self._now)

    def forward_ends(self) -> None:
        self._now.ended = self._mark()

    def blocked(self, us: float) -> None:
        self._now.blocked_us += us
        if self._now.batch is None:
            self._now.blocked_before_us += us

    def _mark(self) -> Any:
        if not self._events:
            return None
        event = self._events.pop()
        event.record()
        return event


@contextmanager
def observed(
    scheduler: Scheduler,
    *,
    marks: bool = False,
    host_work_us: float = 0.0,
    schedule_work: Callable[[Note], object] = lambda _: None,
) -> Iterator[Watch]:
    """Watches what a scheduler does inside.

    Args:
        scheduler: which; nobody else may use it meanwhile.
        marks: also record an event before and after the forward-stream work of each step, up to `MARKED_STEPS`.
        host_work_us: host work to add to each iteration, before the batch is chosen.
        schedule_work: called behind that work, with `schedule_stream` current, and given what to tell how long it stood
            still.

    Yields:
        What is seen; its times on the device can be read when the device is idle.
    """
    observer = _Observer(scheduler, marks, host_work_us, schedule_work)
    with ExitStack() as stack:
        for owner, name, note in (
            (scheduler, "get_next_batch_to_run", observer.iteration_begins),
            # The first work of a step on the forward stream: a decode's, and a prefill's.
            (scheduler.future_map, "resolve_forward_inputs", observer.forward_begins),
            (scheduler.sampling, "write", observer.forward_begins),
            (scheduler.worker, "forward_batch_generation", observer.launched),
        ):
            stack.enter_context(_before(owner, name, note))
        # The last: results are put aside.
        stack.enter_context(_after(scheduler.results, "copy_to_cpu", observer.forward_ends))
        stack.enter_context(blocking_calls(scheduler.device, observer.blocked))
        yield observer.watch
    observer.watch.end_us = devices.host_clock_us(scheduler.device)


@contextmanager
def blocking_calls(device: str, held: Note) -> Iterator[None]:
    """Tells how long each call of an event's or a stream's `synchronize` held the host, in microseconds."""
    dev = devices.get(device)
    with ExitStack() as stack:
        for kind in (type(dev.Event()), type(dev.Stream())):
            stack.enter_context(patch.object(kind, "synchronize", _timed(device, kind.synchronize, held)))
        yield


def _timed(device: str, call: Callable[..., Any], held: Note) -> Callable[..., Any]:
    @wraps(call)
    def run(*args: Any, **options: Any) -> Any:
        begin = devices.host_clock_us(device)
        try:
            return call(*args, **options)
        finally:
            held(devices.host_clock_us(device) - begin)

    return run


def _before(owner: Any, name: str, note: Callable[..., None]) -> AbstractContextManager[Any]:
    call = getattr(owner, name)

    @wraps(call)
    def run(*args: Any, **options: Any) -> Any:
        note(*args)
        return call(*args, **options)

    return patch.object(owner, name, run)


def _after(owner: Any, name: str, note: Callable[[], None]) -> AbstractContextManager[Any]:
    call = getattr(owner, name)

    @wraps(call)
    def run(*args: Any, **options: Any) -> Any:
        out = call(*args, **options)
        note()
        return out

    return patch.object(owner, name, run)


def _step(now: Beat, after: Beat) -> Step:
    device_us = idle_us = None
    marks: Sequence[Any] = (now.begun, now.ended, after.begun)
    if None not in marks:
        device_us = 1000 * float(now.begun.elapsed_time(after.begun))
        idle_us = 1000 * float(now.ended.elapsed_time(after.begun))
    return Step(
        after.begin_us - now.begin_us,
        now.blocked_us,
        now.blocked_before_us,
        now.launch_us,
        now.added_us,
        device_us,
        idle_us,
    )
