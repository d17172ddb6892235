"""Exercises of the chapter "wait or synchronize": whom a fence holds, for which capture, and whom it leaves out."""

from collections.abc import Callable, Mapping
from typing import Any

from refimpl.fences import VerifyDone
from refimpl.lessons.exercise import Exercise, Verdict
from refimpl.lessons.exercise_order import Rejected, fenced, refuse_idle, refuse_order, refuse_races
from refimpl.lessons.exercise_run import judge
from refimpl.lessons.exercises import wait_or_synchronize_programs as programs
from refimpl.lessons.exercises import wait_or_synchronize_wrong as wrong
from refimpl.lessons.overlap_program import overlap_program
from refimpl.order import EdgeKind, build
from refimpl.program import EventRecord, EventSync, Op, Program, StreamWaitEvent, label

Call = Callable[[], None]

# 1. Which capture does a wait bind to?


def my_captures() -> dict[int, int | None]:
    """From each wait to the record whose capture it takes."""
    return {0: None, 3: None, 7: None, 10: None}


def _captures() -> dict[int, int | None]:
    return {0: None, 3: 2, 7: 6, 10: 9}


def _check_captures(answer: Any) -> Verdict:
    given = programs.RERECORDED
    said = answer() if callable(answer) else answer
    if not isinstance(said, Mapping):
        kind = type(said).__name__
        raise Rejected(f"the answer gives {kind}: let it give a dictionary from each wait to its record.")
    truth = _binding(given)
    if set(said) != set(truth):
        raise Rejected(f"the keys are {list(said)}: they must be the waits, ops {', '.join(map(str, truth))}.")
    for wait, record in truth.items():
        if said[wait] != record:
            raise Rejected(_misbound(given, wait, said[wait]))
    return Verdict(
        True, "each wait takes the capture that is current at its call: that of the last record issued before."
    )


def _binding(program: Program) -> dict[int, int | None]:
    """From each wait to the record whose capture it takes, as the happens-before graph has it."""
    graph = build(program)
    bound: dict[int, int | None] = {k: None for k, op in enumerate(program.ops) if isinstance(op, StreamWaitEvent)}
    for edges in graph.into:
        for edge in edges:
            if edge.kind is EdgeKind.EVENT:
                bound[graph.steps[edge.after].op] = graph.steps[edge.before].op
    return bound


def _misbound(program: Program, wait: int, said: object) -> str:
    if said is None:
        return f"the wait at op {wait} is not free: verify_done was recorded before it."
    if not isinstance(said, int) or not 0 <= said < len(program.ops) or not isinstance(program.ops[said], EventRecord):
        return f"the wait at op {wait} cannot bind to {said!r}: name the op index of a record, or None."
    if said > wait:
        why = "a wait takes the capture that is current at its call"
        return f"the wait at op {wait} cannot bind to op {said}, which is issued later: {why}."
    why = "verify_done was recorded again in between, and what it held is gone"
    return f"op {said} no longer counts at op {wait}: {why}."


which_capture = Exercise(
    name="which_capture",
    task="""`verify_done` is recorded three times, once on another stream. Say for each wait (ops 0, 3, 7 and 10)
    whose capture it takes: the op index of a record, or `None` if it waits for nothing.""",
    stub=my_captures,
    checker=_check_captures,
    nudge="""Read the list from the top, as the host does. At each record, note its op index in place of the one you
    had. At each wait, copy the note.""",
    right=_captures,
    wrong=wrong.WHICH_CAPTURE,
    given=programs.RERECORDED,
)


# 2. Put the fence where it belongs.

_LOOP = overlap_program(VerifyDone.NONE, steps=3)


def my_fence(ops: list[Op]) -> list[Op]:
    """The loop's ops, with fences."""
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "prepare 1"; op.step is the
        # iteration, from 0. Which fence goes where? The fences are:
        # StreamWaitEvent(event="verify_done", stream="schedule")
        # StreamWaitStream(stream=…, on=…), EventSync(event=…)
        # EventRecord(event=…, stream=…), StreamSync(stream=…)
        answer.append(op)
    return answer


def _fence(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if label(op).startswith("prepare") and op.step != 0:
            answer.append(StreamWaitEvent(event="verify_done", stream="schedule"))
        answer.append(op)
    return answer


def _check_fence(answer: Any) -> Verdict:
    loop = fenced(_LOOP, answer)
    refuse_races(loop)
    for step in range(1, 3):
        refuse_order(loop, f"forward {step - 1}", f"build {step}", "the host stands still before the launch")
    refuse_idle(loop)
    return Verdict(
        True, "no order lets prepare read too early, the host is free before each launch, and no fence is too many."
    )


put_the_fence = Exercise(
    name="put_the_fence",
    task="""This is the loop of the chapter, three steps, with nothing between forward's write of `new_seq_lens` and
    prepare's read of it. Return its ops with the least fence that leaves no race. The host must not stand still
    before a launch. Keep the ops in their order, add fences to them, and none that
    orders nothing; `verify_done` is recorded already.""",
    stub=my_fence,
    checker=_check_fence,
    nudge="""Who reads too early: the host, or a stream? That is who has to wait. A wait holds what is issued on its
    stream after it.""",
    right=_fence,
    wrong=wrong.PUT_THE_FENCE,
    given=_LOOP,
)


# 3. A wait does not hold the host.


def my_pinned_read(ops: list[Op]) -> list[Op]:
    """The ops, with fences that make the host's read safe."""
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "read lens_cpu". Fences are
        # EventRecord(event=…, stream=…), EventSync(event=…) and so on.
        answer.append(op)
    return answer


def _pinned_read(ops: list[Op]) -> list[Op]:
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
    for other in ("forward 1", "prepare 1"):
        refuse_order(program, other, "read lens_cpu", "the host waits for work that its read does not need")
    refuse_idle(program)
    return Verdict(
        True, "the host reads after the copy, and stands still for that copy alone, after it has launched forward 1."
    )


pinned_trap = Exercise(
    name="pinned_trap",
    task="""`schedule` waits for `verify_done` and copies the lengths to the pinned buffer `lens_cpu`; the copy is
    queued with `non_blocking=True`. Then the host reads the buffer. Return the ops with fences that make this read safe
    and hold the host as little as can be: not before it has launched `forward 1`, and not for work that the read does
    not need.""",
    stub=my_pinned_read,
    checker=_check_pinned,
    nudge="""A wait holds a stream, and the reader here is no stream. An event can mark the point right behind the copy;
    its name is yours to choose.""",
    right=_pinned_read,
    wrong=wrong.PINNED_TRAP,
    given=programs.PINNED,
)


# 4. A second reader.


def my_second_reader(ops: list[Op]) -> list[Op]:
    """The ops, with fences that make plan's read safe."""
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "plan 1"; op.step is the
        # iteration, from 0. A wait is
        # StreamWaitEvent(event="verify_done", stream=…)
        answer.append(op)
    return answer


def _second_reader(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if label(op).startswith("plan") and op.step != 0:
            answer.append(StreamWaitEvent(event="verify_done", stream="plan"))
        answer.append(op)
    return answer


def _check_second(answer: Any) -> Verdict:
    program = fenced(programs.SECOND_READER, answer)
    refuse_races(program)
    for step in range(1, 3):
        refuse_order(program, f"forward {step - 1}", f"build {step}", "the host stands still before the launch")
        refuse_order(program, f"plan {step}", f"prepare {step}", "schedule is held for a reader that it does not need")
    refuse_idle(program)
    return Verdict(
        True, "both readers come after the write, each on its own stream, and neither holds the other or the host."
    )


second_reader = Exercise(
    name="second_reader",
    task="""The plan stream reads `new_seq_lens` too. `schedule` waits for `verify_done` in each step, and forward waits
    for both readers before it overwrites. Make plan's read safe with one more edge a step, and hold neither the host
    nor `schedule` for it.""",
    stub=my_second_reader,
    checker=_check_second,
    nudge="""A wait orders the stream that waits, and no other. What stands after forward's write when the host gets to
    plan's read, and can plan wait for it?""",
    right=_second_reader,
    wrong=wrong.SECOND_READER,
    given=programs.SECOND_READER,
)


# 5. The same in torch.


def my_step(
    dev: Any,
    schedule: Any,
    forward: Any,
    verify_done: Any,
    read: Call,
    write: Call,
) -> None:
    """One step of the loop."""
    with dev.stream(schedule):
        read()
    with dev.stream(forward):
        write()


def _step(dev: Any, schedule: Any, forward: Any, verify_done: Any, read: Call, write: Call) -> None:
    schedule.wait_event(verify_done)
    with dev.stream(schedule):
        read()
    forward.wait_stream(schedule)
    with dev.stream(forward):
        write()
        verify_done.record()


def _check_step(answer: Any) -> Verdict:
    orders = "orders of the simulated device" if judge(answer) == "sim" else "patterns of stalled streams on the GPU"
    return Verdict(
        True, f"in 30 {orders} each step read the lengths of the step before, and the host never stood still."
    )


one_step = Exercise(
    name="one_step",
    task="""Write one step of the loop in torch. `read()` queues the read of `new_seq_lens` on the current stream, which
    must be `schedule`; `write()` queues the write of new lengths, on `forward`. Your function is called six times with
    the same event `verify_done`, which nobody has recorded at first. Each step must read what the step before wrote,
    whatever the device does first, and the host must not stand still.

    The checker runs it 30 times: in orders that the rules allow on the simulated device, or on your GPU with stalled
    streams.""",
    stub=my_step,
    checker=_check_step,
    nudge="""There are two hazards: the read before the write of the step before (RAW), and the write before the read of
    its own step (WAR). Each wants an edge.""",
    right=_step,
    wrong=wrong.ONE_STEP,
)
