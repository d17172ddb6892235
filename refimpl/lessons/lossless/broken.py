"""The engine with one of its fences left out: each of them is there for a reason, which the checker and the text show.

The fences of the five changes have variants of their own in ``refimpl.fences``; those below are never wrong upstream,
and are left out by hand, on an engine that is thrown away afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from refimpl.engine.scheduler import Scheduler
from refimpl.fences import Fences, Publish, WarBarrier

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Broken:
    """An engine without one fence.

    Args:
        words: what is left out, and what goes wrong then.
        options: of ``EngineConfig``.
        leave_out: what is done to the scheduler.
    """

    words: str
    options: Options = field(default_factory=dict)
    leave_out: Callable[[Scheduler], None] = lambda scheduler: None


def _deaf(stream: Any, to: Any) -> None:
    """From now on ``stream`` does not wait for ``to``."""
    wait_stream = stream.wait_stream

    def wait_for_others(other: Any) -> None:
        if other != to:
            wait_stream(other)

    stream.wait_stream = wait_for_others


def _forward_does_not_wait(scheduler: Scheduler) -> None:
    _deaf(scheduler.streams.forward_stream, scheduler.streams.schedule_stream)


def _copy_does_not_wait(scheduler: Scheduler) -> None:
    _deaf(scheduler.streams.copy_stream, scheduler.streams.forward_stream)


def _plan_is_not_forked(scheduler: Scheduler) -> None:
    _deaf(scheduler.streams.plan_stream, scheduler.streams.schedule_stream)


def _plan_is_not_joined(scheduler: Scheduler) -> None:
    _deaf(scheduler.streams.schedule_stream, scheduler.streams.plan_stream)


def _copy_done_is_not_awaited(scheduler: Scheduler) -> None:
    for slot in scheduler.results._slots:
        slot.copy_done.synchronize = lambda: None


def _staging_of_one_half(scheduler: Scheduler) -> None:
    for staging in (scheduler.ints, scheduler.floats):
        staging._halves[1:] = [staging._halves[0]]


def _results_of_one_slot(scheduler: Scheduler) -> None:
    scheduler.results._slots[1:] = [scheduler.results._slots[0]]


class _Forgetful(list[object]):
    def __setitem__(self, index: Any, value: Any) -> None:
        """Keeps nothing."""


def _nothing_is_kept_alive(scheduler: Scheduler) -> None:
    scheduler.batch_record_buf = _Forgetful(scheduler.batch_record_buf)


BROKEN: dict[str, Broken] = {
    "publish": Broken(
        "schedule gathers the relayed lengths before forward published them", {"fences": Fences(publish=Publish.NONE)}
    ),
    "war barrier": Broken(
        "schedule hands a row of req_to_token on while forward still reads it",
        {"fences": Fences(war_barrier=WarBarrier.NONE)},
    ),
    "forward waits for schedule": Broken(
        "forward reads what schedule prepared before it is written", leave_out=_forward_does_not_wait
    ),
    "copy waits for forward": Broken(
        "copy takes results before forward has set them aside", leave_out=_copy_does_not_wait
    ),
    "host awaits copy_done": Broken(
        "the host reads results before they are copied", leave_out=_copy_done_is_not_awaited
    ),
    "two halves of staging": Broken(
        "the host overwrites an upload of the step before, which is still pending", leave_out=_staging_of_one_half
    ),
    "two slots of results": Broken(
        "forward overwrites the results of the step before, which copy still reads", leave_out=_results_of_one_slot
    ),
    "keep-alive ring": Broken(
        "schedule gets the memory of a step's inputs again while forward reads them", leave_out=_nothing_is_kept_alive
    ),
    "plan forks off schedule": Broken(
        "plan writes req_to_token before schedule's barrier", {"plan_stream": True}, _plan_is_not_forked
    ),
    "plan joins schedule": Broken(
        "schedule and forward read req_to_token before plan has written it", {"plan_stream": True}, _plan_is_not_joined
    ),
}
"""By what is left out."""
