"""Looks on at an engine's loop from outside: when its steps begin, how long the host stands still, when the device
idles.

Nothing of the engine is changed for it. Its own methods are wrapped while a run is observed, and put back afterwards,
so what is timed is the loop that everybody runs. No profiler is attached.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Protocol
from unittest.mock import patch

from refimpl import device as devices

MARKED_STEPS = 4096
"""Steps of one run that get marks on the device; the events are made before the run."""


class Observable(Protocol):
    """What of an engine is looked at."""

    device: str
    scheduler: Any
    """Its `get_next_batch_to_run` begins an iteration of the loop."""
    worker: Any
    """Its `forward_decode` and `forward_extend` are the steps."""
    future_map: Any
    """Its `resolve_forward_inputs` is the first, its `stash` the last work of a decode on the forward stream."""


@dataclass
class Beat:
    """One iteration of the loop in which a forward was launched.

    Args:
        begin_us: host clock when it began.
        blocked_us: host time in calls that block, until the next began.
        added_us: host work that the benchmark added.
        batch: the forward's batch, as the worker was given it.
        decode: a decode, not a prefill.
        marks: begin and end of its work on the forward stream, if they were asked for.
    """

    begin_us: float
    blocked_us: float = 0.0
    added_us: float = 0.0
    batch: Any = None
    decode: bool = False
    marks: tuple[Any, Any] | None = None


@dataclass
class Watch:
    """What was seen of a run.

    Args:
        beats: iterations that launched a forward, in order.
        end_us: host clock when the run ended.
    """

    beats: list[Beat] = field(default_factory=list)
    end_us: float = 0.0

    def steady(self, batch_size: int, skip: int = 4) -> list["Step"]:
        """Decodes of this many requests that follow such a decode, without the first few of each stretch.

        Args:
            batch_size: requests that decode.
            skip: decodes left out after a prefill or another batch size.
        """
        steps, run = [], 0
        for before, now, after in zip(self.beats, self.beats[1:], self.beats[2:], strict=False):
            run = run + 1 if all(_full(beat, batch_size) for beat in (before, now, after)) else 0
            if run > skip:
                steps.append(_step(before, now, after))
        return steps


@dataclass(frozen=True)
class Step:
    """One steady decode.

    Args:
        us: from its beginning to that of the next, by the host's clock.
        blocked_us, added_us: of these, in calls that block; and in work that the benchmark added.
        device_us: from its begin mark to the next one's; None without marks.
        idle_us: from the end mark of the decode before to its begin mark; None without marks.
    """

    us: float
    blocked_us: float
    added_us: float
    device_us: float | None
    idle_us: float | None

    @property
    def host_us(self) -> float:
        """What the host did but stand still: the engine's own work, and what was added."""
        return self.us - self.blocked_us


@contextmanager
def observed(engine: Observable, *, marks: bool = False, host_work_us: float = 0.0) -> Iterator[Watch]:
    """Watches what the engine does inside.

    Args:
        engine: which; nobody else may use it meanwhile.
        marks: also record an event before and after the forward-stream work of each decode.
        host_work_us: host work to add to each iteration, before the batch is chosen.
    """
    watch, dev = Watch(), devices.get(engine.device)
    events = iter([dev.Event(enable_timing=True) for _ in range(2 * MARKED_STEPS)] if marks else [])
    current = Beat(devices.host_clock_us(engine.device))

    def begins() -> None:
        nonlocal current
        current = Beat(devices.host_clock_us(engine.device))
        if host_work_us > 0:
            devices.host_work(engine.device, host_work_us)
            current.added_us = devices.host_clock_us(engine.device) - current.begin_us

    def mark() -> Any:
        event = next(events, None)
        if event is not None:
            event.record()
        return event

    def starts(decode: bool) -> Callable[..., None]:
        def note(batch: Any, *_: Any, **__: Any) -> None:
            current.batch, current.decode = batch, decode
            watch.beats.append(current)

        return note

    def resolves(*_: Any) -> None:
        current.marks = (mark(), None) if marks else None

    def stashed() -> None:
        if current.marks is not None:
            current.marks = (current.marks[0], mark())

    def blocks(us: float) -> None:
        current.blocked_us += us

    with ExitStack() as stack:
        stack.enter_context(_before(engine.scheduler, "get_next_batch_to_run", lambda *_, **__: begins()))
        stack.enter_context(_before(engine.worker, "forward_decode", starts(decode=True)))
        stack.enter_context(_before(engine.worker, "forward_extend", starts(decode=False)))
        stack.enter_context(_before(engine.future_map, "resolve_forward_inputs", resolves))
        stack.enter_context(_after(engine.future_map, "stash", stashed))
        stack.enter_context(blocking_calls(engine.device, blocks))
        yield watch
    watch.end_us = devices.host_clock_us(engine.device)


@contextmanager
def blocking_calls(device: str, held: Callable[[float], None]) -> Iterator[None]:
    """Tells how long each call of an event's or a stream's `synchronize` held the host, in microseconds."""
    dev = devices.get(device)
    with ExitStack() as stack:
        for kind in (type(dev.Event()), type(dev.Stream())):
            stack.enter_context(patch.object(kind, "synchronize", _timed(device, kind.synchronize, held)))
        yield


def _timed(device: str, call: Callable[..., Any], held: Callable[[float], None]) -> Callable[..., Any]:
    @wraps(call)
    def run(*args: Any, **options: Any) -> Any:
        begin = devices.host_clock_us(device)
        try:
            return call(*args, **options)
        finally:
            held(devices.host_clock_us(device) - begin)

    return run


def _before(owner: Any, name: str, note: Callable[..., None]) -> Any:
    call = getattr(owner, name)

    @wraps(call)
    def run(*args: Any, **options: Any) -> Any:
        note(*args, **options)
        return call(*args, **options)

    return patch.object(owner, name, run)


def _after(owner: Any, name: str, note: Callable[[], None]) -> Any:
    call = getattr(owner, name)

    @wraps(call)
    def run(*args: Any, **options: Any) -> Any:
        out = call(*args, **options)
        note()
        return out

    return patch.object(owner, name, run)


def _full(beat: Beat, batch_size: int) -> bool:
    return beat.decode and beat.batch is not None and beat.batch.batch_size == batch_size


def _step(before: Beat, now: Beat, after: Beat) -> Step:
    device_us, idle_us = _device_times(before, now, after)
    return Step(after.begin_us - now.begin_us, now.blocked_us, now.added_us, device_us, idle_us)


def _device_times(before: Beat, now: Beat, after: Beat) -> tuple[float | None, float | None]:
    if before.marks is None or now.marks is None or after.marks is None:
        return None, None
    marks: Sequence[Any] = (before.marks[1], now.marks[0], after.marks[0])
    if None in marks:
        return None, None
    ended, begun, next_begun = marks
    return 1000 * begun.elapsed_time(next_begun), 1000 * ended.elapsed_time(begun)
