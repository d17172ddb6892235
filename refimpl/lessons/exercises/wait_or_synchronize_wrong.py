"""Wrong answers to this chapter's exercises: each looks right to somebody, and must be rejected for its reason."""

from collections.abc import Callable
from typing import Any

from refimpl.lessons.exercise import Wrong
from refimpl.lessons.exercise_order import inserted
from refimpl.program import DeviceSync, EventRecord, EventSync, Op, StreamSync, StreamWaitEvent, StreamWaitStream, label

Call = Callable[[], None]

WAIT = StreamWaitEvent(event="verify_done", stream="schedule")
PLAN_WAIT = StreamWaitEvent(event="verify_done", stream="plan")
SYNCHRONIZE = EventSync(event="verify_done")
RECORD_COPIED = EventRecord(event="copied", stream="schedule")
SYNCHRONIZE_COPIED = EventSync(event="copied")
COPY, READ = "copy new_seq_lens", "read lens_cpu"


def _prepare_last(ops: list[Op]) -> list[Op]:
    return sorted(ops, key=lambda op: label(op).startswith("prepare"))


def _copied_too_early(ops: list[Op]) -> list[Op]:
    return inserted(READ, SYNCHRONIZE_COPIED)(inserted(COPY, RECORD_COPIED)(ops))


def _plan_then_schedule(ops: list[Op]) -> list[Op]:
    behind_plan = StreamWaitStream(stream="schedule", on="plan")
    return inserted("prepare", behind_plan, first=1)(inserted("plan", PLAN_WAIT, first=1)(ops))


_LATER = "is issued later"
_PREPARE_RACES = "prepare 1 on schedule may read before forward 0 on forward"
_HOST_STANDS = "makes build 1 come after forward 0: the host stands still"
_READ_RACES = "read lens_cpu on host may read before copy new_seq_lens to lens_cpu on schedule"
_PLAN_RACES = "plan 1 on plan may read before forward 0 on forward"

WHICH_CAPTURE = {
    "an event belongs to one stream": Wrong({0: None, 3: 2, 7: 2, 10: 9}, "op 2 no longer counts at op 7"),
    "a wait takes what is held when it executes": Wrong({0: None, 3: 2, 7: 9, 10: 9}, f"op 9, which {_LATER}"),
    "a wait before any record holds for the first": Wrong({0: 2, 3: 2, 7: 6, 10: 9}, f"op 2, which {_LATER}"),
    "the last record of all": Wrong({0: 9, 3: 9, 7: 9, 10: 9}, f"op 9, which {_LATER}"),
    "a record lasts": Wrong({0: None, 3: 2, 7: 2, 10: 2}, "recorded again in between"),
}

PUT_THE_FENCE = {
    "forward waits": Wrong(
        inserted("prepare", StreamWaitEvent(event="verify_done", stream="forward"), first=1), _PREPARE_RACES
    ),
    "a wait in step 0 alone": Wrong(inserted("prepare", WAIT, last=0), "never recorded before the call"),
    "one wait for good": Wrong(inserted("prepare", WAIT, first=1, last=1), "prepare 2 on schedule may read before"),
    "a wait after prepare": Wrong(inserted("prepare", WAIT, first=1, after=True), _PREPARE_RACES),
    "synchronize": Wrong(inserted("prepare", SYNCHRONIZE, first=1), f"synchronize(verify_done) {_HOST_STANDS}"),
    "device synchronize": Wrong(inserted("prepare", DeviceSync(), first=1), f"device_sync {_HOST_STANDS}"),
    "two waits": Wrong(inserted("prepare", WAIT, WAIT, first=1), "adds nothing"),
    "a wait in step 0 too": Wrong(inserted("prepare", WAIT), "adds nothing"),
    "prepare goes last": Wrong(_prepare_last, "leave its ops in their order"),
}

PINNED_TRAP = {
    "a second wait": Wrong(inserted(READ, WAIT), _READ_RACES),
    "synchronize before the copy is queued": Wrong(inserted(COPY, SYNCHRONIZE), _READ_RACES),
    "synchronize with forward's event": Wrong(inserted(READ, SYNCHRONIZE), _READ_RACES),
    "record before the copy": Wrong(_copied_too_early, _READ_RACES),
    "synchronize right behind the copy": Wrong(
        inserted(COPY, RECORD_COPIED, SYNCHRONIZE_COPIED, after=True), "before it has launched forward 1"
    ),
    "synchronize with the stream": Wrong(
        inserted(READ, StreamSync(stream="schedule")), "makes read lens_cpu come after prepare 1"
    ),
    "synchronize with the device": Wrong(inserted(READ, DeviceSync()), "makes read lens_cpu come after forward 1"),
}

SECOND_READER = {
    "schedule waits once more": Wrong(inserted("plan", WAIT, first=1), _PLAN_RACES),
    "plan waits for schedule before schedule waits": Wrong(
        inserted("wait(verify_done)", StreamWaitStream(stream="plan", on="schedule")), _PLAN_RACES
    ),
    "schedule waits for plan": Wrong(
        inserted("plan", StreamWaitStream(stream="schedule", on="plan"), first=1, after=True), _PLAN_RACES
    ),
    "a wait behind the read": Wrong(inserted("plan", PLAN_WAIT, first=1, after=True), _PLAN_RACES),
    "synchronize": Wrong(inserted("plan", SYNCHRONIZE, first=1), _HOST_STANDS),
    "schedule is held as well": Wrong(_plan_then_schedule, "schedule is held"),
    "two edges": Wrong(
        inserted("plan", PLAN_WAIT, StreamWaitStream(stream="plan", on="forward"), first=1), "adds nothing"
    ),
}


def _no_way_back(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Call, write: Call) -> None:
    schedule.wait_event(verify_done)
    with dev.stream(schedule):
        read()
    with dev.stream(forward):
        write()
        verify_done.record()


def _record_first(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Call, write: Call) -> None:
    schedule.wait_event(verify_done)
    with dev.stream(schedule):
        read()
    forward.wait_stream(schedule)
    with dev.stream(forward):
        verify_done.record()
        write()


def _record_elsewhere(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Call, write: Call) -> None:
    schedule.wait_event(verify_done)
    with dev.stream(schedule):
        read()
    forward.wait_stream(schedule)
    with dev.stream(forward):
        write()
    verify_done.record(schedule)


def _synchronize(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Call, write: Call) -> None:
    verify_done.synchronize()
    with dev.stream(schedule):
        read()
    forward.wait_stream(schedule)
    with dev.stream(forward):
        write()
        verify_done.record()


def _one_stream(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Call, write: Call) -> None:
    with dev.stream(schedule):
        read()
        write()


def _write_first(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Call, write: Call) -> None:
    with dev.stream(forward):
        write()
        verify_done.record()
    schedule.wait_event(verify_done)
    with dev.stream(schedule):
        read()


ONE_STEP = {
    "no way back": Wrong(_no_way_back, "WAR on new_seq_lens"),
    "record before the write": Wrong(_record_first, "RAW on new_seq_lens"),
    "record on schedule": Wrong(_record_elsewhere, "RAW on new_seq_lens"),
    "synchronize": Wrong(_synchronize, "the host stands still for it: step 0 synchronizes with an event"),
    "one stream": Wrong(_one_stream, "step 0 calls write() off its stream"),
    "write, then read": Wrong(_write_first, "WAR on new_seq_lens"),
}
