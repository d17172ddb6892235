"""``publish_ready``: what stands between a publish of ``new_seq_lens_buf`` and the schedule stream's read.

The forward of step N writes the new lengths into the relay's rows on ``forward_stream``, as soon as they exist, and
records ``publish_ready`` behind the write. Preparing step N+1 gathers those rows on ``schedule_stream``. It replaced
``verify_done``, which every draft input carried: one event of the relay is enough.

One event holds one capture. A request whose prefill ran elsewhere has no forward of its own: its rows are seeded on
``schedule_stream``, by the same two calls. The record there drops what the forward in flight had recorded; that is the
torn window. And ``stash`` comes behind the record, on either stream, so that no wait for ``publish_ready`` covers it.

Source: sgl-project/sglang, ``FutureMap.publish``: pull requests 25879 (May 2026), 30435 (July 2026, the chain) and
35748 (August 2026, which took the chain out again).
"""

from enum import StrEnum
from typing import Any


class Publish(StrEnum):
    """The variants, oldest first. ``NONE`` and ``OVERWRITE`` are races; so is ``CHAIN``, where rows are seeded."""

    NONE = "none"
    OVERWRITE = "overwrite"
    CHAIN = "chain"
    WAIT_STREAM = "wait_stream"


def wait_publish_ready(variant: Publish, publish_ready: Any, reader: Any) -> None:
    """Orders what ``reader`` is given from here on after the publish that ``publish_ready`` holds.

    Removes the RAW hazard on ``new_seq_lens_buf``; ``NONE`` shows it.

    Args:
        variant: whether the reader waits.
        publish_ready: the relay's event; None before the first publish, where a wait is none.
        reader: the stream that reads the rows next: ``schedule_stream``, or the private one that copies lengths to
            the host.

    Order:
        Called on the host; it does not block. The event's capture at this call counts: the last publish issued. (On HIP
        upstream synchronizes the host with the event instead: pull request 26672, May 2026.)
    """
    if publish_ready is None:
        return
    match variant:
        case Publish.NONE:
            # Hazard: RAW. schedule may gather new_seq_lens_buf before forward wrote its rows.
            pass
        case Publish.OVERWRITE | Publish.CHAIN | Publish.WAIT_STREAM:
            # Safe because: schedule gathers new_seq_lens_buf after forward's publish.
            reader.wait_event(publish_ready)


def record_publish_ready(variant: Publish, publish_ready: Any, writer: Any, recorded: bool) -> None:
    """Says that the rows that ``writer`` was given are written.

    Args:
        variant: whether the record keeps what the event held.
        publish_ready: the relay's event.
        writer: the current stream: ``forward_stream``, or ``schedule_stream`` where rows are seeded.
        recorded: whether the event holds an earlier publish.

    Order:
        Called on the host behind the write; it does not block. On the forward's own stream the chain adds nothing.
    """
    match variant:
        case Publish.NONE | Publish.OVERWRITE | Publish.WAIT_STREAM:
            # Hazard, where OVERWRITE seeds: the capture of the forward in flight is forgotten. Under WAIT_STREAM the
            # writer has waited for that forward before.
            pass
        case Publish.CHAIN if recorded:
            # Safe because: the capture that is dropped is part of the new one.
            # Hazard, where rows are seeded: WAW. The write itself came before this wait.
            writer.wait_event(publish_ready)
    publish_ready.record(writer)


def before_prebuilt(variant: Publish, schedule_stream: Any, forward_stream: Any) -> None:
    """Orders the seeds of prebuilt requests after the forward in flight.

    Removes the WAW hazards on ``new_seq_lens_buf`` and on what ``stash`` writes, where a row changes hands.

    Args:
        variant: whether schedule waits.
        schedule_stream: the stream that seeds.
        forward_stream: the stream that may still write the rows of a request that ended.

    Order:
        Called on the host before the first seed is written; it does not block.
    """
    match variant:
        case Publish.NONE | Publish.OVERWRITE | Publish.CHAIN:
            # Hazard: WAW. The redundant forward of the row's last owner may publish and stash over the seeds.
            pass
        case Publish.WAIT_STREAM:
            # Safe because: forward publishes and stashes before the tail of its stream.
            schedule_stream.wait_stream(forward_stream)
