"""Exercises of the chapter "wait or synchronize": whom an event holds, for which capture, and who is left out."""

from collections.abc import Callable, Mapping
from typing import Any

from refimpl.fences import VerifyDone
from refimpl.lessons.exercise import Exercise, Verdict, Wrong
from refimpl.lessons.exercise_order import Rejected, fenced, refuse_idle, refuse_order, refuse_races
from refimpl.lessons.exercise_run import judge
from refimpl.lessons.exercises import wait_or_synchronize_programs as programs
from refimpl.lessons.overlap_program import overlap_program
from refimpl.order import EdgeKind, build
from refimpl.program import (
    DeviceSync,
    EventRecord,
    EventSync,
    Op,
    Program,
    StreamSync,
    StreamWaitEvent,
    StreamWaitStream,
    label,
)

# 1. Which capture does a wait bind to?


def which_capture_stub() -> dict[int, int | None]:
    return {0: None, 3: None, 7: None, 10: None}


def which_capture_solution() -> dict[int, int | None]:
    return {0: None, 3: 2, 7: 6, 10: 9}


def _check_binding(answer: Any) -> Verdict:
    given = programs.RERECORDED
    said = answer() if callable(answer) else answer
    if not isinstance(said, Mapping):
        raise Rejected(f"the answer is of type {type(said).__name__}: let it be a dictionary from each wait's op index to its record's.")
    truth = _binding(given)
    if set(said) != set(truth):
        raise Rejected(f"the keys are {list(said)}: they must be the waits, ops {', '.join(map(str, truth))}.")
    for wait, record in truth.items():
        if said[wait] != record:
            raise Rejected(_misbound(given, wait, said[wait], record))
    return Verdict(True, "each wait binds to the capture that the event held at the call; a record before it in issue order, the last of them.")


def _binding(program: Program) -> dict[int, int | None]:
    """From each wait to the record whose capture it takes, as the happens-before graph has it."""
    graph = build(program)
    bound: dict[int, int | None] = {k: None for k, op in enumerate(program.ops) if isinstance(op, StreamWaitEvent)}
    for edges in graph.into:
        for edge in edges:
            if edge.kind is EdgeKind.EVENT:
                bound[graph.steps[edge.after].op] = graph.steps[edge.before].op
    return bound


def _misbound(program: Program, wait: int, said: object, record: int | None) -> str:
    if said is None:
        return f"the wait at op {wait} is not free: verify_done was recorded before it."
    if not isinstance(said, int) or not 0 <= said < len(program.ops) or not isinstance(program.ops[said], EventRecord):
        return f"the wait at op {wait} cannot bind to {said!r}: name the op index of a record, or None."
    if said > wait:
        return f"the wait at op {wait} cannot bind to op {said}, which is issued later: a wait takes the capture that is current at its call."
    return f"op {said} no longer counts at op {wait}: verify_done was recorded again in between, and what it held is gone."


which_capture = Exercise(
    name="which_capture",
    task="""`verify_done` is recorded three times, once on another stream. Say for each wait (ops 0, 3, 7, 10) which record's
        capture it binds to, by op index; `None` if it waits for nothing.""",
    stub=which_capture_stub,
    checker=_check_binding,
    hint_text="Read the list from the top as the host does. At each record, note the op index in place of the one you had. At each wait, copy the note.",
    solution_answer=which_capture_solution,
    wrong={
        "an event belongs to the stream that recorded it first": Wrong({0: None, 3: 2, 7: 2, 10: 9}, "op 2 no longer counts at op 7"),
        "a wait takes what the event holds when it executes": Wrong({0: None, 3: 2, 7: 9, 10: 9}, "op 9, which is issued later"),
        "a wait before any record holds for the first": Wrong({0: 2, 3: 2, 7: 6, 10: 9}, "op 2, which is issued later"),
        "the last record of all": Wrong({0: 9, 3: 9, 7: 9, 10: 9}, "cannot bind to op 9"),
        "a record lasts": Wrong({0: None, 3: 2, 7: 2, 10: 2}, "recorded again in between"),
    },
    given=programs.RERECORDED,
)  # fmt: skip


# 2. Put the fence where it belongs.

_LOOP = overlap_program(VerifyDone.NONE, steps=4)


def put_the_fence_stub(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "prepare 1"; op.step is the iteration. Where does which fence go?
        answer.append(op)
    return answer


def put_the_fence_solution(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if label(op).startswith("prepare") and op.step != 0:
            answer.append(StreamWaitEvent(event="verify_done", stream="schedule", step=op.step))
        answer.append(op)
    return answer


def _check_fence(answer: Any) -> Verdict:
    loop = fenced(_LOOP, answer)
    refuse_races(loop)
    for step in range(1, 4):
        refuse_order(loop, f"forward {step - 1}", f"build {step}", "the host stands still before the launch")
    refuse_idle(loop)
    return Verdict(True, "no order lets prepare read too early, the host is free before each launch, and no fence could go.")


def inserted(before: str, *fences: Op, first: int = 1, last: int = 99, after: bool = False) -> Callable[[list[Op]], list[Op]]:
    """An answer that puts fences before (or after) each op whose name begins so, in the steps from ``first`` to ``last``."""

    def answer(ops: list[Op]) -> list[Op]:
        out: list[Op] = []
        for op in ops:
            here = fences if label(op).startswith(before) and first <= (op.step or 0) <= last else ()
            out += [op, *here] if after else [*here, op]
        return out

    return answer


def _wait(stream: str) -> Op:
    return StreamWaitEvent(event="verify_done", stream=stream)


put_the_fence = Exercise(
    name="put_the_fence",
    task="""The overlapped loop of this chapter, four steps, without a fence between forward's write of `new_seq_lens` and prepare's
        read of it. Return its ops with the least fence that makes it free of races; the host must not stand still before a
        launch. Leave the ops in their order and add to them; `verify_done` is recorded already.""",
    stub=put_the_fence_stub,
    checker=_check_fence,
    hint_text="Who reads too early: a stream, or the host? That is who has to wait. A wait holds what is issued on that stream after it.",
    solution_answer=put_the_fence_solution,
    wrong={
        "forward waits": Wrong(inserted("prepare", _wait("forward")), "prepare 1 on schedule may read before forward 0 on forward"),
        "a wait in step 0 alone": Wrong(inserted("prepare", _wait("schedule"), first=0, last=0), "never recorded before the call"),
        "one wait for good": Wrong(inserted("prepare", _wait("schedule"), last=1), "prepare 2 on schedule may read before forward 1 on forward"),
        "a wait after prepare": Wrong(inserted("prepare", _wait("schedule"), after=True), "prepare 1 on schedule may read before forward 0"),
        "synchronize": Wrong(inserted("prepare", EventSync(event="verify_done")), "synchronize(verify_done) makes build 1 come after forward 0: the host stands still"),
        "device synchronize": Wrong(inserted("prepare", DeviceSync()), "device_sync makes build 1 come after forward 0: the host stands still"),
        "wait twice": Wrong(inserted("prepare", _wait("schedule"), _wait("schedule")), "adds nothing"),
        "wait in every step": Wrong(inserted("prepare", _wait("schedule"), first=0), "adds nothing"),
        "prepare goes last": Wrong(lambda ops: sorted(ops, key=lambda op: label(op).startswith("prepare")), "leave its ops in their order"),
    },
    given=_LOOP,
)  # fmt: skip


# 3. A wait does not hold the host.


def pinned_trap_stub(ops: list[Op]) -> list[Op]:
    return ops


def pinned_trap_solution(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if label(op) == "read lens_cpu":
            answer.append(EventSync(event="copied"))
        answer.append(op)
        if label(op) == "copy new_seq_lens to lens_cpu":
            answer.append(EventRecord(event="copied", stream="schedule"))
    return answer


def _check_pinned(answer: Any) -> Verdict:
    program = fenced(programs.PINNED, answer)
    refuse_races(program)
    refuse_order(program, "forward 0", "build 1", "the host stands still before it has launched forward 1")
    refuse_order(program, "forward 1", "read lens_cpu", "the host waits for work that its read does not need")
    refuse_order(program, "prepare 1", "read lens_cpu", "the host waits for work that its read does not need")
    refuse_idle(program)
    return Verdict(True, "the host reads after the copy, stands still for that copy alone, and only after it has launched forward 1.")


_COPY, _READ = "copy new_seq_lens", "read lens_cpu"
_COPIED = EventRecord(event="copied", stream="schedule")

pinned_trap = Exercise(
    name="pinned_trap",
    task="""`schedule` waits for `verify_done` and copies the lengths to the pinned buffer `lens_cpu`; the copy is queued with
        `non_blocking=True`. Then the host reads the buffer. Return the ops with fences that make the read safe and hold the
        host as little as can be: not before it has launched `forward 1`, and not for work that the read does not need.""",
    stub=pinned_trap_stub,
    checker=_check_pinned,
    hint_text="A wait holds a stream, and the reader here is no stream. An event can stand right behind the copy; its name is yours to choose.",
    solution_answer=pinned_trap_solution,
    wrong={
        "a second wait": Wrong(inserted(_READ, _wait("schedule"), first=0), "read lens_cpu on host may read before copy new_seq_lens to lens_cpu on schedule"),
        "synchronize before the copy is queued": Wrong(
            inserted(_COPY, EventSync(event="verify_done"), first=0), "read lens_cpu on host may read before copy new_seq_lens to lens_cpu on schedule"
        ),
        "synchronize with forward's event": Wrong(inserted(_READ, EventSync(event="verify_done"), first=0), "RAW on lens_cpu"),
        "record before the copy": Wrong(
            lambda ops: inserted(_READ, EventSync(event="copied"), first=0)(inserted(_COPY, _COPIED, first=0)(ops)), "RAW on lens_cpu"
        ),
        "synchronize right behind the copy": Wrong(inserted(_COPY, _COPIED, EventSync(event="copied"), first=0, after=True), "before it has launched forward 1"),
        "synchronize with the stream": Wrong(inserted(_READ, StreamSync(stream="schedule"), first=0), "makes read lens_cpu come after prepare 1"),
        "synchronize with the device": Wrong(inserted(_READ, DeviceSync(), first=0), "makes read lens_cpu come after forward 1"),
    },
    given=programs.PINNED,
)  # fmt: skip


# 4. A second reader.


def second_reader_stub(ops: list[Op]) -> list[Op]:
    return ops


def second_reader_solution(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if label(op).startswith("plan") and op.step != 0:
            answer.append(StreamWaitEvent(event="verify_done", stream="plan", step=op.step))
        answer.append(op)
    return answer


def _check_second(answer: Any) -> Verdict:
    program = fenced(programs.SECOND_READER, answer)
    refuse_races(program)
    for step in range(1, 3):
        refuse_order(program, f"forward {step - 1}", f"build {step}", "the host stands still before the launch")
        refuse_order(program, f"plan {step}", f"prepare {step}", "schedule is held for a reader that it does not need")
    refuse_idle(program)
    return Verdict(True, "both readers come after the write, each on its own stream, and neither holds the other or the host.")


def _stream_after(on: str, stream: str) -> Op:
    return StreamWaitStream(stream=stream, on=on)


second_reader = Exercise(
    name="second_reader",
    task="""The plan stream reads `new_seq_lens` too. `schedule` waits for `verify_done` in each step, and forward waits for both
        readers before it overwrites. Make plan's read safe with one more edge a step; hold neither the host nor `schedule`
        for it.""",
    stub=second_reader_stub,
    checker=_check_second,
    hint_text="A wait orders the stream that waits, and no other. What can plan wait for that is already after forward's write when the host gets there?",
    solution_answer=second_reader_solution,
    wrong={
        "schedule waits once more": Wrong(inserted("plan", _wait("schedule")), "plan 1 on plan may read before forward 0 on forward"),
        "plan waits for schedule before schedule waits": Wrong(inserted("wait(verify_done)", _stream_after("schedule", "plan")), "plan 1 on plan may read before forward 0"),
        "schedule waits for plan": Wrong(inserted("plan", _stream_after("plan", "schedule"), after=True), "plan 1 on plan may read before forward 0"),
        "a wait behind the read": Wrong(inserted("plan", _wait("plan"), after=True), "plan 1 on plan may read before forward 0"),
        "synchronize": Wrong(inserted("plan", EventSync(event="verify_done")), "the host stands still"),
        "schedule is held as well": Wrong(
            lambda ops: inserted("prepare", _stream_after("plan", "schedule"))(inserted("plan", _wait("plan"))(ops)), "schedule is held"
        ),
        "two edges": Wrong(inserted("plan", _wait("plan"), _stream_after("forward", "plan")), "adds nothing"),
    },
    given=programs.SECOND_READER,
)  # fmt: skip


# 5. The same in torch.


def one_step_stub(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Callable[[], None], write: Callable[[], None]) -> None:
    with dev.stream(schedule):
        read()
    with dev.stream(forward):
        write()


def one_step_solution(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Callable[[], None], write: Callable[[], None]) -> None:
    schedule.wait_event(verify_done)
    with dev.stream(schedule):
        read()
    forward.wait_stream(schedule)
    with dev.stream(forward):
        write()
        verify_done.record()


def _check_one_step(answer: Any) -> Verdict:
    device = judge(answer)
    how = "30 seeds of the adversary" if device == "sim" else "30 patterns of stalled streams"
    return Verdict(True, f"under {how} each step read the lengths of the step before, and the host never stood still.")


def _no_way_back(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Callable[[], None], write: Callable[[], None]) -> None:
    schedule.wait_event(verify_done)
    with dev.stream(schedule):
        read()
    with dev.stream(forward):
        write()
        verify_done.record()


def _record_first(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Callable[[], None], write: Callable[[], None]) -> None:
    schedule.wait_event(verify_done)
    with dev.stream(schedule):
        read()
    forward.wait_stream(schedule)
    with dev.stream(forward):
        verify_done.record()
        write()


def _record_elsewhere(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Callable[[], None], write: Callable[[], None]) -> None:
    schedule.wait_event(verify_done)
    with dev.stream(schedule):
        read()
    forward.wait_stream(schedule)
    with dev.stream(forward):
        write()
    verify_done.record(schedule)


def _synchronize(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Callable[[], None], write: Callable[[], None]) -> None:
    verify_done.synchronize()
    with dev.stream(schedule):
        read()
    forward.wait_stream(schedule)
    with dev.stream(forward):
        write()
        verify_done.record()


def _one_stream(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Callable[[], None], write: Callable[[], None]) -> None:
    with dev.stream(schedule):
        read()
        write()


def _write_first(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Callable[[], None], write: Callable[[], None]) -> None:
    with dev.stream(forward):
        write()
        verify_done.record()
    schedule.wait_event(verify_done)
    with dev.stream(schedule):
        read()


one_step = Exercise(
    name="one_step",
    task="""Write one step of the loop in torch. `read()` queues the read of `new_seq_lens` on the current stream, which must be
        `schedule`; `write()` queues the write of new lengths, on `forward`. Your function is called six times, with the same event
        `verify_done` each time, never recorded at first. Each step must read what the step before wrote, whatever the device
        does first, and the host must not stand still.

        The checker runs it on the simulated device in 30 legal orders drawn by seeds, or on your GPU with stalled streams.""",
    stub=one_step_stub,
    checker=_check_one_step,
    hint_text="There are two hazards: read before the write of the step before (RAW), and write before the read of this step (WAR). Each wants an edge.",
    solution_answer=one_step_solution,
    wrong={
        "no way back": Wrong(_no_way_back, "WAR on new_seq_lens"),
        "record before the write": Wrong(_record_first, "RAW on new_seq_lens"),
        "record on schedule": Wrong(_record_elsewhere, "RAW on new_seq_lens"),
        "synchronize": Wrong(_synchronize, "the host stands still for it: step 0 synchronizes with an event"),
        "one stream": Wrong(_one_stream, "step 0 calls write() off its stream"),
        "write, then read": Wrong(_write_first, "WAR on new_seq_lens"),
    },
)  # fmt: skip
