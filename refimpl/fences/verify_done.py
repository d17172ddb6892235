"""``verify_done``: what stands between the forward's write of ``new_seq_lens`` and the schedule stream's read of it.

The forward of step N writes ``new_seq_lens`` on ``forward_stream`` and records ``verify_done`` there. Preparing step
N+1 reads ``new_seq_lens`` on ``schedule_stream``. Both fences below order the read after the write; they differ in who
stands still meanwhile.

DFLASH kept an event of that name longer, at the end of its step, and for another hazard: a fence of its own around the
cells of ``req_to_token`` that ``prepare_for_decode`` writes.

Source: sgl-project/sglang, ``ScheduleBatch.maybe_wait_verify_done``, pull request 25465 (May 2026); superseded by
``publish_ready`` with pull request 25879 of the same week. DFLASH's: ``DFlashDraftInputV2.prepare_for_decode``, until
pull request 29556 (June 2026).
"""

from enum import StrEnum
from typing import Any

from refimpl import device as devices


class VerifyDone(StrEnum):
    """The variants, oldest first. ``NONE`` is the race; it stays here, runnable, and is tested to be one."""

    NONE = "none"
    SYNCHRONIZE = "synchronize"
    WAIT = "wait"


def maybe_wait_verify_done(
    variant: VerifyDone,
    device: str,
    verify_done: Any,
    schedule_stream: Any,
) -> None:
    """Orders what ``schedule_stream`` is given from here on after the forward that recorded ``verify_done``.

    Removes the RAW hazard on ``new_seq_lens``; ``NONE`` shows it.

    Args:
        variant: who waits: nobody, the host, or the stream.
        device: ``"cuda"`` or ``"sim"``.
        verify_done: the event that the forward recorded last; None before the first forward.
        schedule_stream: the stream that reads ``new_seq_lens`` next; it must be the current one.

    Order:
        Called on the host, with ``schedule_stream`` current. ``SYNCHRONIZE`` blocks the host until the forward has
        executed; ``WAIT`` and ``NONE`` return at once.
    """
    current = devices.get(device).current_stream()
    assert current == schedule_stream, "verify_done orders the current stream"
    if verify_done is None:
        return
    match variant:
        case VerifyDone.NONE:
            # Hazard: RAW. schedule may read new_seq_lens before forward wrote it.
            pass
        case VerifyDone.SYNCHRONIZE:
            # Safe because: the host submits schedule's read after verify_done.
            verify_done.synchronize()
        case VerifyDone.WAIT:
            # Safe because: schedule reads new_seq_lens after verify_done.
            schedule_stream.wait_event(verify_done)


def self_fence(variant: VerifyDone, verify_done: Any, plan_stream: Any, schedule_stream: Any) -> None:
    """DFLASH's own fence: ``prepare_for_decode`` writes ``req_to_token`` after the whole forward in flight.

    Removes the WAR hazard on ``req_to_token`` where cells of running requests are appended; rows that prefills write
    are not behind it.

    Args:
        variant: ``NONE`` for no such fence; ``SYNCHRONIZE`` as upstream had it; ``WAIT`` for what it could have been.
        verify_done: recorded at the end of the last forward; None before the first one.
        plan_stream: writes the table where there is one; None: ``schedule_stream`` does.
        schedule_stream: the stream of ``prepare_for_decode``.

    Order:
        Called on the host. ``SYNCHRONIZE`` without a plan stream blocks the host until the forward has executed.
    """
    if verify_done is None:
        return
    match variant:
        case VerifyDone.NONE:
            # Safe only where a barrier stands before: it orders these writes after the same reads.
            pass
        case VerifyDone.SYNCHRONIZE if plan_stream is None:
            # Safe because: the host submits schedule's writes after verify_done.
            verify_done.synchronize()
        case VerifyDone.SYNCHRONIZE | VerifyDone.WAIT if plan_stream is not None:
            # Safe because: plan writes the table after verify_done.
            plan_stream.wait_event(verify_done)
        case VerifyDone.WAIT:
            # Safe because: schedule writes the table after verify_done.
            schedule_stream.wait_event(verify_done)
