"""Wrong answers to this chapter's exercises: each looks right to somebody, and must be rejected for its reason."""

from collections.abc import Callable

from refimpl.lessons.exercise import Wrong
from refimpl.lessons.exercise_order import inserted
from refimpl.program import EventRecord, EventSync, Op, StreamSync, StreamWaitEvent, StreamWaitStream, label

_RECORD = EventRecord(event="draft_done", stream="forward")
_WAIT = StreamWaitEvent(event="draft_done", stream="plan")
Answer = Callable[[list[Op]], list[Op]]


def _between(record_before: str, wait_before: str, record: Op = _RECORD, wait: Op = _WAIT) -> Answer:
    """A record before ops of one name, and a wait before those of another."""

    def answer(ops: list[Op]) -> list[Op]:
        out: list[Op] = []
        for op in ops:
            out += [record] if label(op).startswith(record_before) else []
            out += [wait] if label(op).startswith(wait_before) else []
            out.append(op)
        return out

    return answer


def _wait_then_record(ops: list[Op]) -> list[Op]:
    return inserted("load verify", _WAIT, _RECORD)(ops)


_NOTHING_SAYS_SO = "under wait_stream draft 1 comes before load verify 1, and nothing says so here"

SPELL_IT = {
    "the stream's own word": Wrong(
        inserted("load verify", StreamWaitStream(stream="plan", on="forward")), "that is wait_stream itself"
    ),
    "recorded before the draft": Wrong(_between("draft ", "load verify"), _NOTHING_SAYS_SO),
    "waited for before it is recorded": Wrong(_wait_then_record, _NOTHING_SAYS_SO),
    "recorded on plan": Wrong(
        inserted("load verify", EventRecord(event="draft_done", stream="plan"), _WAIT), _NOTHING_SAYS_SO
    ),
    "forward waits": Wrong(
        inserted("load verify", _RECORD, StreamWaitEvent(event="draft_done", stream="forward")), _NOTHING_SAYS_SO
    ),
    "the host waits": Wrong(
        inserted("load verify", _RECORD, EventSync(event="draft_done")), "here draft 1 comes before build 2"
    ),
    "once is enough": Wrong(inserted("load verify", _RECORD, _WAIT, last=1), "draft 2 comes before load verify 2"),
}

_HELD = "plan is held for a draft of which it reads nothing"

MOVE_IT_UP = {
    "the event at the tail": Wrong(inserted("load verify", _RECORD, _WAIT), _HELD),
    "wait_stream": Wrong(inserted("load verify", StreamWaitStream(stream="plan", on="forward")), _HELD),
    "before the draft's own reads": Wrong(
        _between("load draft", "load verify"),
        "WAR on req_to_token: load verify 1 on plan may overwrite before load draft 1 on forward has read",
    ),
    "the join again": Wrong(
        inserted("load verify", StreamWaitStream(stream="forward", on="plan"), after=True), "WAR on req_to_token"
    ),
    "the draft waits": Wrong(
        _between("load verify", "draft ", EventRecord(event="draft_done", stream="plan"), _WAIT), "WAR on req_to_token"
    ),
    "the host waits": Wrong(
        _between("draft ", "load verify", wait=EventSync(event="draft_done")), "the host stands still"
    ),
    "the first step alone": Wrong(
        inserted("draft ", _RECORD, _WAIT, last=1), "RAW on seq_lens: load verify 2 on plan may read before verify 1"
    ),
    "both": Wrong(inserted("draft ", _RECORD, _WAIT, _WAIT), "adds nothing"),
}

_EARLY_CAST = "RAW on next_ids: cast ids 1 on plan may read before verify 1 on forward has written"

PRODUCER_WAIT = {
    "the join once more": Wrong(
        inserted("cast ids", StreamWaitStream(stream="forward", on="plan"), after=True), _EARLY_CAST
    ),
    "the event that is there": Wrong(inserted("cast ids", _WAIT), _EARLY_CAST),
    "before the table's copy": Wrong(
        inserted("load extend", StreamWaitStream(stream="plan", on="forward")), "the table's copy is held"
    ),
    "forward is synchronized": Wrong(inserted("cast ids", StreamSync(stream="forward")), "the host stands still"),
    "behind the cast": Wrong(
        inserted("cast ids", StreamWaitStream(stream="plan", on="forward"), after=True), _EARLY_CAST
    ),
    "recorded before the verify": Wrong(
        _between(
            "verify",
            "cast ids",
            EventRecord(event="ids", stream="forward"),
            StreamWaitEvent(event="ids", stream="plan"),
        ),
        _EARLY_CAST,
    ),
}
