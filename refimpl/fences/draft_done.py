"""``draft_done``: what stands between the draft's forward and the preparation of its verify on ``plan_stream``.

With a plan stream the verify is prepared beside the forward stream: its page table is copied from ``req_to_token``, its
lengths and the drafted tokens into the static inputs of its graph; then the forward stream joins. The preparation reads
what the draft writes, what schedule wrote for this step, and it writes inputs that the last verify may still read.

Source: sgl-project/sglang, ``EAGLEWorkerV2.verify``: pull requests 21940 (April 2026, the event), 25917 (May 2026, its
revert) and 28034 (June 2026, open when read: an event before the draft's forward). Of pull request 22008, an
asynchronous variant that was given up, we have no text but a mention: it is not rebuilt here.
"""

from enum import StrEnum
from typing import Any


class DraftDone(StrEnum):
    """The variants, oldest first; all of them with a plan stream.

    ``NONE`` is the race. ``REPAIRED`` waits for schedule alone: it reads drafted tokens that may not be there, and they
    are copied once more behind the join. Its draft extend is prepared on the forward stream; with ``REPAIRED_EXTEND``
    that is left to the plan stream too, and nobody repairs it.
    ``WAIT_STREAM`` and ``EVENT`` are one fence in two spellings: the event is recorded at the tail of the forward
    stream. ``EARLY`` records it behind the draft's own reads of the tables, before the draft's forward; the drafted
    tokens are then filled in behind the join.
    """

    NONE = "none"
    REPAIRED = "repaired"
    REPAIRED_EXTEND = "repaired_extend"
    WAIT_STREAM = "wait_stream"
    EVENT = "event"
    EARLY = "early"


def marks_before_draft(variant: DraftDone) -> bool:
    """Whether ``draft_done`` is recorded behind the draft's own reads of the tables, before its forward."""
    return variant is DraftDone.EARLY


def marks_behind_draft(variant: DraftDone) -> bool:
    """Whether ``draft_done`` is recorded behind the draft's forward."""
    return variant is DraftDone.EVENT


def fills_after_join(variant: DraftDone) -> bool:
    """Whether the drafted tokens are copied behind the join, on the forward stream that drafted them."""
    return variant in (DraftDone.REPAIRED, DraftDone.REPAIRED_EXTEND, DraftDone.EARLY)


def plans_drafted_tokens(variant: DraftDone) -> bool:
    """Whether the plan copies the drafted tokens."""
    return variant is not DraftDone.EARLY


def extends_on_plan(variant: DraftDone) -> bool:
    """Whether the draft extend is prepared on the plan stream too, behind the verify's preparation.

    Hazard, if so where the plan waits for schedule alone: WAR on the draft extend's static inputs. Schedule waits for
    the last verify, and the last draft extend comes behind it.
    """
    return variant is not DraftDone.REPAIRED


def fork_plan(variant: DraftDone, draft_done: Any, plan_stream: Any, schedule_stream: Any, forward_stream: Any) -> None:
    """Orders what ``plan_stream`` is given from here on after what the other streams did before.

    Args:
        variant: what the plan waits for.
        draft_done: recorded on ``forward_stream``: behind the draft for ``EVENT``, before its forward for ``EARLY``.
        plan_stream: prepares the verify.
        schedule_stream: prepared this step: its rows and lengths.
        forward_stream: drafts, and verified before; it has waited for schedule.

    Order:
        Called on the host; it does not block.
    """
    match variant:
        case DraftDone.NONE:
            # Hazard: RAW on all that the verify starts from, and on this step's rows and lengths; WAR on the static
            # inputs of the draft extend, and on the verify's where the host has not waited for the last one.
            pass
        case DraftDone.REPAIRED | DraftDone.REPAIRED_EXTEND:
            # Hazard: RAW on what the verify starts from: the bonus tokens, which forward gathers in this step, and the
            # drafted ones. Rows and lengths are schedule's, and are there; the verify of the last step is over where
            # schedule, or the host before it, has waited for its lengths.
            plan_stream.wait_stream(schedule_stream)
        case DraftDone.WAIT_STREAM:
            # Safe because: forward drafted before its tail, and it read the verify's inputs of the last step earlier.
            plan_stream.wait_stream(forward_stream)
        case DraftDone.EVENT:
            # Safe because: the event stands at that very tail.
            plan_stream.wait_event(draft_done)
        case DraftDone.EARLY:
            # Safe because: the plan reads nothing that the draft's forward writes, and the last verify came before.
            plan_stream.wait_event(draft_done)


def join_plan(plan_stream: Any, forward_stream: Any) -> None:
    """Orders what ``forward_stream`` is given from here on after the plan.

    Order:
        Called on the host before the verify is replayed; it does not block.
    """
    # Safe because: forward replays the verify after plan filled its inputs.
    forward_stream.wait_stream(plan_stream)
