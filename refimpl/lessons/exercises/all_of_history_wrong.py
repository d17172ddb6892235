"""Wrong answers to this chapter's exercises: each looks right to somebody, and must be rejected for its reason."""

from refimpl.lessons.exercise import Wrong
from refimpl.program import EventSync, Op, StreamWaitEvent, StreamWaitStream, label


def _text_decides() -> dict[str, str]:
    return {"a": "right", "b": "right", "c": "right", "d": "right"}


def _a_race_is_harm() -> dict[str, str]:
    return {"a": "racy-harmful", "b": "right", "c": "racy-harmful", "d": "cannot tell"}


def _runs_prove() -> dict[str, str]:
    return {"a": "racy-masked", "b": "right", "c": "racy-harmful", "d": "right"}


def _one_is_left_out() -> dict[str, str]:
    return {"a": "racy-masked", "b": "right", "c": "racy-harmful"}


READ_A_ROW = {
    "the text decides": Wrong(_text_decides, "a is not 'right'"),
    "a race is harm": Wrong(_a_race_is_harm, "a is not 'racy-harmful'"),
    "a thousand runs are a proof": Wrong(_runs_prove, "d is not 'right'"),
    "a row is left out": Wrong(_one_is_left_out, "the keys are a, b, c"),
}


def _without_the_events(ops: list[Op]) -> list[Op]:
    return [op for op in ops if not isinstance(op, EventSync)]


def _events_alone(ops: list[Op]) -> list[Op]:
    coarse = (StreamWaitStream(stream="schedule", on="forward", step=n) for n in (1, 2))
    gone = list(coarse)
    return [op for op in ops if op not in gone and not isinstance(op, EventSync)]


def _the_host_alone(ops: list[Op]) -> list[Op]:
    return [
        op
        for op in ops
        if not isinstance(op, StreamWaitEvent) and not (isinstance(op, StreamWaitStream) and op.stream == "schedule")
    ]


def _no_fence(ops: list[Op]) -> list[Op]:
    return [op for op in ops if not isinstance(op, EventSync | StreamWaitEvent | StreamWaitStream)]


def _less_work(ops: list[Op]) -> list[Op]:
    return [op for op in ops if label(op) != "draft_extend 1"]


LEAVE_SOME_OUT = {
    "DFLASH's fence alone goes": Wrong(_without_the_events, "orders nothing that the others do not order"),
    "the barrier goes": Wrong(_events_alone, "WAR on req_to_token"),
    "the host's fence stays": Wrong(_the_host_alone, "the host stands still before the launch"),
    "all of them go": Wrong(_no_fence, "more pairs race"),
    "work goes": Wrong(_less_work, "leave out waits alone"),
}
