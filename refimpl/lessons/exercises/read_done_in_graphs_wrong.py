"""Wrong answers to this chapter's exercises: each looks right to somebody, and must be rejected for its reason."""

from typing import Any

from refimpl.lessons.exercise import Wrong

_RIGHT = {
    "snapshot": "pre_replay",
    "metadata captured": "in_replay",
    "translation in each layer": "post_replay",
    "a kernel behind the graph": "unknown",
}
_LATE = "later than needed"


def _overwrites(table: str, reader: str) -> str:
    return f"WAR on {table}: prepare on schedule may overwrite before {reader} on forward has read"


DECLARE_THE_BOUNDARY = {
    "the captured kernel is forgotten": Wrong(
        {**_RIGHT, "metadata captured": "pre_replay"}, _overwrites("req_to_token", "replay/metadata")
    ),
    "the node stands behind the metadata alone": Wrong(
        {**_RIGHT, "translation in each layer": "in_replay"}, _overwrites("full_to_swa", "replay/layers")
    ),
    "the replay is all": Wrong(
        {**_RIGHT, "a kernel behind the graph": "post_replay"}, _overwrites("req_to_token", "read on")
    ),
    "the whole stream, to be safe": Wrong(dict.fromkeys(_RIGHT, "unknown"), _LATE),
    "behind the replay, to be safe": Wrong({**_RIGHT, "metadata captured": "post_replay"}, _LATE),
    "no such boundary": Wrong({**_RIGHT, "snapshot": "before"}, "'before' is none of"),
}

PLANT_THE_NODE = {
    "at the head of the graph": Wrong([], "WAR on req_to_token"),
    "behind the first kernel alone": Wrong(["gather rows"], "WAR on full_to_swa"),
    "behind the other branch": Wrong(["layer 1"], "WAR on full_to_swa"),
    "at the end of the graph": Wrong(["layer 2"], "the record waits for layer 1"),
    "behind everything": Wrong(["gather rows", "translate", "layer 1"], "the record waits for layer 1"),
    "a node that is not there": Wrong(["metadata"], "that is no graph"),
}


def _does_not_look(runner: Any, schedule: Any, forward: Any) -> None:
    event, runner.shared_read_done_event = runner.shared_read_done_event, None
    schedule.wait_event(event)


def _keeps(runner: Any, schedule: Any, forward: Any) -> None:
    event = runner.shared_read_done_event
    if event is not None:
        schedule.wait_event(event)
    else:
        schedule.wait_stream(forward)


def _clears_first(runner: Any, schedule: Any, forward: Any) -> None:
    runner.shared_read_done_event = None
    _keeps(runner, schedule, forward)


def _waits_the_wrong_way(runner: Any, schedule: Any, forward: Any) -> None:
    event, runner.shared_read_done_event = runner.shared_read_done_event, None
    if event is not None:
        forward.wait_event(event)
    else:
        forward.wait_stream(schedule)


def _coarse(runner: Any, schedule: Any, forward: Any) -> None:
    schedule.wait_stream(forward)


def _host(runner: Any, schedule: Any, forward: Any) -> None:
    forward.synchronize()


_HELD = "makes prepare 1 come after replay 0: the replay reads its snapshot alone"
_PREFILL_OVERTAKEN = "WAR on req_to_token: prepare 2 on schedule may overwrite before prefill 1 on forward has read"

TAKE_THE_EVENT = {
    "an empty mailbox is not looked for": Wrong(_does_not_look, "a prefill leaves the mailbox empty"),
    "the event is left where it is": Wrong(_keeps, _PREFILL_OVERTAKEN),
    "cleared before it is taken": Wrong(_clears_first, _HELD),
    "the other stream waits": Wrong(_waits_the_wrong_way, "WAR on req_to_token: prepare 1"),
    "coarse each time": Wrong(_coarse, _HELD),
    "the host waits": Wrong(_host, _HELD),
}


def _by_pairs(step: int) -> str:
    return f"read_done {step // 2}"


def _each_its_own(step: int) -> str:
    return f"read_done {step}"


def _first_and_rest(step: int) -> str:
    return "read_done 0" if step == 0 else "read_done 1"


ONE_EVENT_TWO_LAUNCHES = {
    "two steps share one": Wrong(_by_pairs, "nobody goes on"),
    "the first has its own": Wrong(_first_and_rest, "nobody goes on"),
    "each has its own": Wrong(_each_its_own, "4 events: fewer do"),
    "no name": Wrong(lambda step: None, "give a name for each step"),
}
