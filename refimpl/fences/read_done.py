"""``read_done``: where in a step the graph runner says that it has read the shared tables for the last time.

``load_batch`` copies the batch's rows of ``req_to_token`` into the graph's static page table; if the replay reads that
snapshot alone, the table may be overwritten while it runs, and the event belongs behind ``load_batch``. Whether it does
is a property of the attention backend: one whose captured metadata kernel reads the live table again must say so.

Source: sgl-project/sglang, ``DecodeCudaGraphRunner.execute``: pull requests 28363 and 29541 (June 2026), and 34052
(August 2026), which has every backend declare its boundary. For EAGLE the runner of the draft extend records it,
since June 2026 too. Multi-layer EAGLE recorded none before 36752 (August 2026), which was reverted by 38041.
"""

from enum import StrEnum


class SharedReadBoundary(StrEnum):
    """Where a backend reads the shared tables last: before its replay, within it, behind it, or nobody knows."""

    PRE_REPLAY = "pre_replay"
    IN_REPLAY = "in_replay"
    POST_REPLAY = "post_replay"
    UNKNOWN = "unknown"


class ReadDone(StrEnum):
    """Where the event is recorded, and by whom.

    ``COARSE`` records none, so that the barrier waits for the tail of the forward stream. ``PRE_REPLAY``, ``IN_REPLAY``
    (a node of the graph, behind its metadata kernel) and ``POST_REPLAY`` record it there, whatever the backend reads;
    ``DECLARED`` where the backend's boundary says. All of these by the last reader of the step. ``WRONG_PHASE`` has the
    verify record it though a draft extend reads behind it; ``STALE_MAILBOX`` leaves the event of one step to the next.
    """

    COARSE = "coarse"
    PRE_REPLAY = "pre_replay"
    IN_REPLAY = "in_replay"
    POST_REPLAY = "post_replay"
    DECLARED = "declared"
    WRONG_PHASE = "wrong_phase"
    STALE_MAILBOX = "stale_mailbox"


def recorded_at(variant: ReadDone, declared: SharedReadBoundary) -> SharedReadBoundary:
    """Where a publishing runner records the event; ``UNKNOWN`` for nowhere.

    Args:
        variant: what the engine runs with.
        declared: the boundary of the runner's backend.
    """
    match variant:
        case ReadDone.COARSE:
            # Safe because: without an event the barrier waits for the whole forward.
            return SharedReadBoundary.UNKNOWN
        case ReadDone.DECLARED:
            # Safe because: the backend reads the tables before the boundary that it declares.
            return declared
        case ReadDone.IN_REPLAY:
            # Safe because: the graph reads the live tables before its event node, if at all.
            return SharedReadBoundary.IN_REPLAY
        case ReadDone.POST_REPLAY:
            # Safe because: whatever the replay reads, it has read.
            return SharedReadBoundary.POST_REPLAY
        case ReadDone.PRE_REPLAY | ReadDone.WRONG_PHASE | ReadDone.STALE_MAILBOX:
            # Hazard: WAR, where the replay reads the live tables again.
            return SharedReadBoundary.PRE_REPLAY


def keeps_mailbox(variant: ReadDone) -> bool:
    """Whether the barrier leaves the event that it takes in its mailbox.

    Hazard, if so: a phase that publishes nothing, such as a prefill, is fenced by the event of an older step.
    """
    return variant is ReadDone.STALE_MAILBOX


def publishes_at_verify(variant: ReadDone) -> bool:
    """Whether the verify publishes although a draft extend reads the tables behind it.

    Hazard, if so: WAR. The rows that the draft extend is about to read may change hands.
    """
    return variant is ReadDone.WRONG_PHASE
