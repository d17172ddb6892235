"""``publish_ready``: what stands between the forward's publish of ``new_seq_lens_buf`` and the schedule stream's read.

The forward of step N writes the new lengths into the relay's rows on ``forward_stream``, as soon as they exist, and
records ``publish_ready`` behind the write. Preparing step N+1 gathers those rows on ``schedule_stream``. It replaced
``verify_done``, which every draft input carried: one event of the relay is enough.

Source: sgl-project/sglang, ``FutureMap.publish``, pull request 25879 (May 2026).
"""

from enum import StrEnum
from typing import Any


class Publish(StrEnum):
    """The variants. ``NONE`` is the race; it stays here, runnable, and is tested to be one."""

    NONE = "none"
    READY = "ready"


def wait_publish_ready(variant: Publish, publish_ready: Any, reader: Any) -> None:
    """Orders what ``reader`` is given from here on after the last publish.

    Removes the RAW hazard on ``new_seq_lens_buf``; ``NONE`` shows it.

    Args:
        variant: whether the reader waits.
        publish_ready: the relay's event; None before the first publish.
        reader: the stream that reads the rows next: ``schedule_stream``, or the private one that copies lengths to
            the host.

    Order:
        Called on the host; it does not block. The event's capture at this call counts: the last publish issued.
    """
    if publish_ready is None:
        return
    match variant:
        case Publish.NONE:
            # Hazard: RAW. schedule may gather new_seq_lens_buf before forward wrote its rows.
            pass
        case Publish.READY:
            # Safe because: schedule gathers new_seq_lens_buf after forward's publish.
            reader.wait_event(publish_ready)
