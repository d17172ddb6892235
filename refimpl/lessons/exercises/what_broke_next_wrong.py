"""Wrong answers to this chapter's exercises: each looks right to somebody, and must be rejected for its reason."""

from refimpl.lessons.exercise import Wrong
from refimpl.lessons.exercise_order import inserted
from refimpl.program import EventRecord, StreamWaitEvent, StreamWaitStream


def _layers_read_it_too() -> dict[str, list[str]]:
    return {"load_batch": ["req_to_token"], "metadata": ["req_to_token"], "layers": ["req_to_token", "page_table"]}


def _the_last_reader_alone() -> dict[str, list[str]]:
    return {"load_batch": [], "metadata": ["req_to_token"], "layers": ["page_table"]}


def _another_buffer() -> dict[str, list[str]]:
    return {"load_batch": ["req_to_token"], "metadata": ["page_tables"], "layers": ["page_table"]}


STATE_THE_READS = {
    "everything reads everything": Wrong(_layers_read_it_too, "more is stated than is read"),
    "the last reader alone": Wrong(_the_last_reader_alone, "load_batch"),
    "a name that is none": Wrong(_another_buffer, "page_tables"),
}

WHO_ELSE = {
    "the reader that is covered": Wrong(("new_seq_lens", "verify 0", "prepare 1"), "comes behind verify 0"),
    "two readers": Wrong(("new_seq_lens", "draft_extend 0", "pull 1"), "neither of them writes"),
    "a buffer that they do not share": Wrong(("tokens", "verify 0", "pull 1"), "do not both use tokens"),
    "no such op": Wrong(("new_seq_lens", "verify", "pull 1"), "no op 'verify'"),
}

FINER_EVENT = {
    "schedule waits for all, always": Wrong(
        inserted("prepare", StreamWaitStream(stream="schedule", on="forward"), first=1),
        "may come in either order",
    ),
    "a barrier in every step": Wrong(
        lambda ops: inserted("seed", StreamWaitStream(stream="schedule", on="forward"))(
            inserted("prepare", StreamWaitStream(stream="schedule", on="forward"), first=1, last=1)(ops)
        ),
        "a step that seeds nothing",
    ),
    "a chain": Wrong(
        inserted(
            "seed",
            StreamWaitEvent(event="read_done", stream="schedule"),
            EventRecord(event="read_done", stream="schedule"),
        ),
        "may come in either order",
    ),
    "behind the seed": Wrong(
        inserted("seed", StreamWaitStream(stream="schedule", on="forward"), after=True),
        "may come in either order",
    ),
}
