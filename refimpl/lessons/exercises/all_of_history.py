"""Exercises of the chapter "All of history in one table": what a row says, and which of three fences is enough."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from refimpl.lessons.exercise import Exercise, Verdict
from refimpl.lessons.exercise_order import Fenced, Rejected, name, refuse_order, refuse_races
from refimpl.lessons.exercises import all_of_history_programs as programs
from refimpl.lessons.exercises import all_of_history_wrong as wrong
from refimpl.order import check
from refimpl.program import EventSync, Op, StreamWaitEvent, StreamWaitStream, label

WAITS = (EventSync, StreamWaitEvent, StreamWaitStream)

# 1. What does a row of the table say?


def my_verdicts() -> dict[str, str]:
    """What follows from each row."""
    return {"a": "right", "b": "right", "c": "right", "d": "right"}


def _verdicts() -> dict[str, str]:
    return {"a": "racy-masked", "b": "right", "c": "racy-harmful", "d": "cannot tell"}


def _check_verdicts(answer: Any) -> Verdict:
    said = answer() if callable(answer) else answer
    if not isinstance(said, Mapping):
        raise Rejected(f"the answer gives {type(said).__name__}: let it give a dictionary from each row to a verdict.")
    if set(said) != set(programs.SEEN):
        raise Rejected(f"the keys are {', '.join(map(str, said))}: name each of {', '.join(programs.SEEN)} once.")
    for row, seen in programs.SEEN.items():
        if said[row] != programs.verdict(seen):
            raise Rejected(f"{row} is not {said[row]!r}: {_why(seen)}.")
    return Verdict(True, "the checker says whether there is a race, and the runs whether anybody was seen to be hurt.")


def _why(seen: programs.Seen) -> str:
    if seen.wrong or seen.lower:
        return "a race that makes drafts be rejected costs time, though the text is right"
    if seen.races is None:
        return "that no run went wrong is no proof, and nobody has asked the checker"
    if not seen.races:
        return "the checker finds every two accesses in order"
    return "there is a race, and no emitted token shows it; the dropped ones do"


read_a_row = Exercise(
    name="read_a_row",
    task="""Four rows, each of 1000 runs. Say what follows from each: `"right"`, `"racy-masked"`, `"racy-harmful"` or
    `"cannot tell"`.

    a: the checker finds 2 races; no emitted token is wrong, the accept length is the control's; 449 runs have a wrong
    token among the dropped ones.

    b: the checker finds none; no token is wrong, dropped or not.

    c: 3 races; no emitted token is wrong; in 12 runs the accept length is clearly lower than the control's.

    d: the checker was not asked; no emitted token is wrong; nobody looked at dropped ones.""",
    stub=my_verdicts,
    checker=_check_verdicts,
    nudge="""Take the columns from the left: is there an order for every two accesses? If not, who was seen to suffer:
    the text, the acceptance, or nobody whose work was kept?""",
    right=_verdicts,
    wrong=wrong.READ_A_ROW,
)


# 2. Which of three fences is enough?


def my_fences(ops: list[Op]) -> list[Op]:
    """The ops, without the waits that are too many."""
    answer: list[Op] = []
    for op in ops:
        # op is an EventSync(event="verify_done"), a
        # StreamWaitStream(stream="schedule", on="forward"), a
        # StreamWaitEvent(event="publish_ready", stream="schedule"),
        # or something else. Which of them may be left out?
        answer.append(op)
    return answer


def _fences(ops: list[Op]) -> list[Op]:
    return [op for op in ops if not isinstance(op, EventSync | StreamWaitEvent)]


def _check_fences(answer: Any) -> Verdict:
    program = _reduced(answer)
    refuse_races(program)
    for step in range(1, programs.STEPS):
        refuse_order(program, f"draft_extend {step - 1}", f"build {step}", "the host stands still before the launch")
    for index, op in enumerate(program.program.ops):
        if isinstance(op, WAITS) and not check(program.without(index)).races:
            raise Rejected(f"{name(program.program, index)} orders nothing that the others do not order.")
    return Verdict(True, "no race, the host is free before each launch, and none of the waits that are left may go.")


def _reduced(answer: Any) -> Fenced:
    """The program with some of its waits left out, and with them where a culprit may be looked for."""
    given = programs.BELT_AND_BRACES
    said = answer(list(given.ops)) if callable(answer) else answer
    if not isinstance(said, list | tuple):
        raise Rejected(f"the answer gives {type(said).__name__}: let it return a list of ops.")
    rest = list(said)
    for op in given.ops:
        if rest and rest[0] == op:
            rest.pop(0)
        elif not isinstance(op, WAITS):
            raise Rejected(f"{label(op)} is missing or has moved: leave out waits alone, and keep the order.")
    if rest:
        raise Rejected(f"{label(rest[0])} is new or has moved: leave out waits alone, and keep the order.")
    kept = tuple(said)
    return Fenced(replace(given, ops=kept), tuple(k for k, op in enumerate(kept) if isinstance(op, WAITS)))


leave_some_out = Exercise(
    name="leave_some_out",
    task="""Three steps with every fence that the months had: the host synchronizes with `verify_done`, the end of the
    step; `schedule` waits for all of `forward`; and it waits for `publish_ready`, right behind the verify. Return the
    ops without the waits that are too many, so that no race is left, the host does not stand still before a launch, and
    no wait that stays may go. Leave everything else as it is.""",
    stub=my_fences,
    checker=_check_fences,
    nudge="""Two hazards: the lengths are read (RAW), and the table is overwritten (WAR). Who reads the table last, and
    which of the three comes behind that?""",
    right=_fences,
    wrong=wrong.LEAVE_SOME_OUT,
    given=programs.BELT_AND_BRACES,
)
