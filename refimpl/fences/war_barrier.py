"""The WAR barrier: the schedule stream overwrites ``req_to_token`` only after the forward in flight has read it.

The forward of step N reads rows of ``req_to_token`` on ``forward_stream``. Preparing step N+1 writes that table on
``schedule_stream``. With a row that changed hands, both touch the same cells. Processing the results of step N-1 writes
another table that the forward reads, ``full_to_swa``; so the barrier stands in front of it.

Source: sgl-project/sglang, ``Scheduler._apply_war_barrier``: pull requests 26380 (May 2026, at the top of the loop),
26646 (May 2026, on CUDA alone), 27967 (June 2026, a switch for other platforms), 28363 (June 2026, the event), 29556
(June 2026, DFLASH too) and 31687 (July 2026, which moved it right behind ``run_batch``). Upstream's result processing
writes more than ours: 31687 names rows of ``req_to_token`` and entries of requests that go on, which nothing masks.
"""

from enum import StrEnum
from typing import Any


class Platform(StrEnum):
    """Whose streams the engine believes to drive: upstream's barrier is off by default where they are not CUDA's."""

    CUDA = "cuda"
    HIP = "hip"


class WarBarrier(StrEnum):
    """The variants, oldest first. ``NONE`` is the race; at ``LOOP_TOP`` results are processed behind a forward that the
    barrier has not seen."""

    NONE = "none"
    LOOP_TOP = "loop_top"
    AFTER_RUN_BATCH = "after_run_batch"


def barrier_stands(variant: WarBarrier, platform: Platform, place: WarBarrier) -> bool:
    """Whether the barrier stands at a place of the loop.

    Args:
        variant: what the engine runs with.
        platform: upstream applies no barrier where it is not CUDA (pull request 26646), unless
            ``SGLANG_ENABLE_WAR_BARRIER`` asks for it (27967).
        place: ``LOOP_TOP`` or ``AFTER_RUN_BATCH``.
    """
    # Hazard, where it stands nowhere: WAR. schedule may hand a row on while forward still reads it. At LOOP_TOP alone:
    # results are processed behind a forward that the barrier did not see.
    return platform is Platform.CUDA and variant is place


def apply_war_barrier(read_done: Any, schedule_stream: Any, forward_stream: Any) -> None:
    """Orders what ``schedule_stream`` is given from here on after the forward's last read of the shared tables.

    Removes the WAR hazard on ``req_to_token`` and on ``full_to_swa``.

    Args:
        read_done: the event that the last reader of the shared tables recorded behind its read, taken from its
            mailbox; None where it published nothing, which makes the barrier coarse.
        schedule_stream: the stream that writes the tables.
        forward_stream: the stream that reads them.

    Order:
        Called on the host; it does not block.
    """
    if read_done is not None:
        # Safe because: forward reads the tables before read_done.
        schedule_stream.wait_event(read_done)
    else:
        # Safe because: forward reads the tables before the tail of its stream.
        schedule_stream.wait_stream(forward_stream)
