"""Marks around the parts of an EAGLE step: the loads of its graphs and the graphs.

Forward stands still in front of each step until the host has queued all of it: what lies between two marks is the
device's work then, and no gap of a host that calls late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any
from unittest.mock import patch

from refimpl import device as devices
from refimpl.engine.scheduler import Scheduler

FORWARD, PLAN, LOAD = "forward", "plan", "load"
FIRST, TOKENS = f"{LOAD} draft", f"{LOAD} tokens"
"""Where a step begins; and what is left to forward behind the join, where plan loads no drafted tokens."""
STALL_US = 4000.0
"""Longer than the host needs for a step, its marks included."""


@dataclass(frozen=True)
class Part:
    """One part of a steady step, in medians, counted from where the draft's load begins.

    Args:
        preset: whose step.
        name: ``"load draft"``, ``"draft"`` and so on.
        stream: ``"forward"`` or ``"plan"``.
        begin_us, end_us: by the stream's events.
    """

    preset: str
    name: str
    stream: str
    begin_us: float
    end_us: float

    @property
    def us(self) -> float:
        """How long it takes."""
        return self.end_us - self.begin_us


@dataclass
class Marks:
    """Events around the parts of the steps of a run, in the order in which the host issued them."""

    device: str
    plan_stream: Any
    taken: list[tuple[str, str, Any, Any]] = field(default_factory=list)
    inside: bool = False

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call between two marks; a call within one that is marked is a part of it."""
        dev = devices.get(self.device)

        @wraps(call)
        def marked(*args: Any, **options: Any) -> Any:
            if self.inside:
                return call(*args, **options)
            if name == FIRST:
                devices.sleep_stream(self.device, STALL_US)
            stream = PLAN if dev.current_stream() == self.plan_stream else FORWARD
            begin, end = dev.Event(enable_timing=True), dev.Event(enable_timing=True)
            self.inside = True
            begin.record()
            found = call(*args, **options)
            end.record()
            self.inside = False
            self.taken.append((name, stream, begin, end))
            return found

        return marked

    def steps(self) -> Iterator[list[tuple[str, str, float, float]]]:
        """The parts of each step, in microseconds behind its own begin. The device is idle."""
        for step in self._stepwise():
            first = step[0][2]
            yield [
                (name, stream, 1000 * first.elapsed_time(begin), 1000 * first.elapsed_time(end))
                for name, stream, begin, end in step
            ]

    def _stepwise(self) -> Iterator[list[tuple[str, str, Any, Any]]]:
        begins = [at for at, (name, *_) in enumerate(self.taken) if name == FIRST]
        for at, until in zip(begins, [*begins[1:], len(self.taken)], strict=True):
            yield self.taken[at:until]


@contextmanager
def marked(scheduler: Scheduler) -> Iterator[Marks]:
    """Inside, the parts of an EAGLE step have marks around them, and forward stands still in front of each step.

    Args:
        scheduler: whose steps; nobody else may use it meanwhile.

    Yields:
        What is marked; it can be read when the device is idle.
    """
    marks = Marks(scheduler.device, scheduler.streams.plan_stream)
    with ExitStack() as stack:
        for runner in scheduler.worker.runners():
            of = {"load_batch": f"{LOAD} {runner.name}", "load_tokens": TOKENS, "replay": runner.name}
            for method, name in of.items():
                stack.enter_context(patch.object(runner, method, marks.around(name, getattr(runner, method))))
        yield marks
