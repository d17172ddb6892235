"""The WAR barrier: the schedule stream overwrites ``req_to_token`` only after the forward in flight has read it.

The forward of step N reads rows of ``req_to_token`` on ``forward_stream``. Preparing step N+1 writes that table on
``schedule_stream``. With a row that changed hands, both touch the same cells. Processing the results of step N-1 writes
another table that the forward reads, ``full_to_swa``; so the barrier stands in front of it.

Source: sgl-project/sglang, ``Scheduler._apply_war_barrier``: pull requests 26380 (May 2026), 28363 (June 2026) and
31687 (July 2026), which moved it right behind ``run_batch``.
"""

from enum import StrEnum
from typing import Any


class WarBarrier(StrEnum):
    """The variants. ``NONE`` is the race; it stays here, runnable, and is tested to be one."""

    NONE = "none"
    AFTER_RUN_BATCH = "after_run_batch"


def apply_war_barrier(variant: WarBarrier, read_done: Any, schedule_stream: Any, forward_stream: Any) -> None:
    """Orders what ``schedule_stream`` is given from here on after the forward's last read of the shared tables.

    Removes the WAR hazard on ``req_to_token`` and on ``full_to_swa``; ``NONE`` shows it.

    Args:
        variant: whether there is a barrier.
        read_done: the event that the last reader of the shared tables recorded behind its read, taken from its
            mailbox; None where it published nothing, which makes the barrier coarse.
        schedule_stream: the stream that writes the tables.
        forward_stream: the stream that reads them.

    Order:
        Called on the host right after ``run_batch``; it does not block.
    """
    match variant:
        case WarBarrier.NONE:
            # Hazard: WAR. schedule may hand a row to its next owner while forward still reads it.
            pass
        case WarBarrier.AFTER_RUN_BATCH if read_done is not None:
            # Safe because: forward reads the tables before read_done, and replays read only their snapshot.
            schedule_stream.wait_event(read_done)
        case WarBarrier.AFTER_RUN_BATCH:
            # Safe because: forward reads the tables before the tail of its stream.
            schedule_stream.wait_stream(forward_stream)
