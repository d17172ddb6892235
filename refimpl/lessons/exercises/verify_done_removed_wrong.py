"""Wrong answers to this chapter's exercises: each looks right to somebody, and must be rejected for its reason."""

from refimpl.lessons.exercise import Wrong
from refimpl.lessons.exercise_order import inserted
from refimpl.program import EventRecord, EventSync, Op, StreamWaitEvent, StreamWaitStream

SELF_FENCE, BARRIER = "host synchronizes with verify_done", "schedule waits for forward"
FORK, COARSE = StreamWaitStream(stream="plan", on="schedule"), StreamWaitStream(stream="schedule", on="forward")
_NEW_OWNER = "new owner 2 on schedule may overwrite before load 1 on forward has read"
_FREED = "free 0 on schedule may overwrite before load 1 on forward has read"
_APPEND_RACES = "append 1 on plan may overwrite before load 0 on forward has read"

WHICH_FENCE = {
    "the barrier": Wrong({BARRIER}, _NEW_OWNER),
    "both": Wrong({SELF_FENCE, BARRIER}, "WAR on req_to_token"),
    "neither": Wrong(set(), f"without “{SELF_FENCE}” too, no order is wrong"),
    "the one that is left": Wrong({"forward waits for schedule"}, "RAW on req_to_token"),
    "an event": Wrong({"verify_done"}, "is no fence of this program"),
}


def _self_fence(ops: list[Op]) -> list[Op]:
    recorded = inserted("replay", EventRecord(event="verify_done", stream="forward"), after=True)(ops)
    return inserted("append", EventSync(event="verify_done"), first=1)(recorded)


def _self_fence_that_waits(ops: list[Op]) -> list[Op]:
    recorded = inserted("replay", EventRecord(event="verify_done", stream="forward"), after=True)(ops)
    return inserted("append", StreamWaitEvent(event="verify_done", stream="schedule"), first=1)(recorded)


def _event_before_the_read(ops: list[Op]) -> list[Op]:
    recorded = inserted("load", EventRecord(event="read_done", stream="forward"))(ops)
    return inserted("replay", StreamWaitEvent(event="read_done", stream="schedule"), after=True)(recorded)


PLACE_THE_BARRIER = {
    "at the top": Wrong(inserted("build", COARSE, first=1), _FREED),
    "in front of the append": Wrong(inserted("append", COARSE, first=1), _FREED),
    "the self-fence": Wrong(_self_fence, "holds the host"),
    "the self-fence, with a wait": Wrong(_self_fence_that_waits, _FREED),
    "in front of free alone": Wrong(inserted("free", COARSE, last=1), "append"),
    "an event in front of the reads": Wrong(_event_before_the_read, "WAR on"),
    "forward waits": Wrong(inserted("append", StreamWaitStream(stream="forward", on="schedule"), first=1), "WAR on"),
    "at both places": Wrong(
        lambda ops: inserted("build", COARSE, first=1)(inserted("replay", COARSE, after=True)(ops)),
        "adds nothing",
    ),
    "the host": Wrong(
        lambda ops: inserted("replay", EventSync(event="done"), after=True)(
            inserted("replay", EventRecord(event="done", stream="forward"), after=True)(ops)
        ),
        "holds the host",
    ),
}

REACH_THE_PLAN = {
    "schedule waits once more": Wrong(inserted("append", COARSE, first=1), _APPEND_RACES),
    "a fork before the barrier": Wrong(inserted("load", FORK), _APPEND_RACES),
    "a fork behind the write": Wrong(inserted("append", FORK, first=1, after=True), _APPEND_RACES),
    "one fork for good": Wrong(inserted("append", FORK, first=1, last=1), "append 2 on plan may overwrite"),
    "a fork in step 0 too": Wrong(inserted("append", FORK), "adds nothing"),
    "the host": Wrong(
        lambda ops: inserted("append", EventSync(event="done"), first=1)(
            inserted("replay", EventRecord(event="done", stream="forward"), after=True)(ops)
        ),
        "holds the host",
    ),
}

TWO_BLOCKS = {
    "one block": Wrong(lambda committed, block: committed + block, "writes where no cell is"),
    "one block and a token": Wrong(lambda committed, block: committed + block + 1, "writes where no cell is"),
    "three blocks": Wrong(lambda committed, block: committed + 3 * block, "more cells than any step can reach"),
    "none": Wrong(lambda committed, block: committed, "writes where no cell is"),
}
