"""Exercises of the chapter "draft_done": one fence in two spellings, where the event belongs, a join that is none."""

from typing import Any

from refimpl.lessons.exercise import Exercise, Verdict
from refimpl.lessons.exercise_order import Fenced, Rejected, fenced, refuse_idle, refuse_order, refuse_races
from refimpl.lessons.exercises import draft_done_programs as programs
from refimpl.lessons.exercises import draft_done_wrong as wrong
from refimpl.lessons.plan_orders import ordered
from refimpl.program import EventRecord, Op, StreamWaitEvent, StreamWaitStream, label

# 1. Spell it otherwise.


def my_event(ops: list[Op]) -> list[Op]:
    """The ops, with an event where plan would wait for forward."""
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "load verify 1". The fences:
        # EventRecord(event="draft_done", stream=…)
        # StreamWaitEvent(event="draft_done", stream=…)
        answer.append(op)
    return answer


def _event(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if label(op).startswith("load verify"):
            answer.append(EventRecord(event="draft_done", stream="forward"))
            answer.append(StreamWaitEvent(event="draft_done", stream="plan"))
        answer.append(op)
    return answer


def _check_event(answer: Any) -> Verdict:
    found = fenced(programs.TAIL, answer)
    if any(isinstance(found.program.ops[index], StreamWaitStream) for index in found.added):
        raise Rejected("that is wait_stream itself: say the same with an event.")
    have, want = ordered(found.program), ordered(programs.WAIT_STREAM)
    for first, second in sorted(want - have):
        raise Rejected(f"under wait_stream {first} comes before {second}, and nothing says so here.")
    for first, second in sorted(have - want):
        raise Rejected(f"here {first} comes before {second}; under wait_stream either may.")
    return Verdict(True, f"all {len(want)} ordered pairs of work are the same: it is one fence.")


spell_it = Exercise(
    name="spell_it",
    task="""Two steps with a plan stream, and nothing in front of `load verify`. `plan.wait_stream(forward)` belongs
    there, right before each of them. Return the ops with a record and a wait in its place, so that exactly the same
    pairs of work are in order: no pair fewer, and none more.""",
    stub=my_event,
    checker=_check_event,
    nudge="""`wait_stream` is a record at the tail of one stream and a wait on the other. Where is the tail of forward
    when the host gets to `load verify`?""",
    right=_event,
    wrong=wrong.SPELL_IT,
    given=programs.TAIL,
)


# 2. Let the plan run beside the draft.


def my_early(ops: list[Op]) -> list[Op]:
    """The ops, with a fence that leaves plan free of the draft."""
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "load draft 1". The fences:
        # EventRecord(event="draft_done", stream=…)
        # StreamWaitEvent(event="draft_done", stream=…)
        answer.append(op)
    return answer


def _early(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if label(op).startswith("draft "):
            answer.append(EventRecord(event="draft_done", stream="forward"))
        if label(op).startswith("load verify"):
            answer.append(StreamWaitEvent(event="draft_done", stream="plan"))
        answer.append(op)
    return answer


def _check_early(answer: Any) -> Verdict:
    found = fenced(programs.EARLY, answer)
    refuse_races(found)
    for step in programs.STEPS:
        why = "plan is held for a draft of which it reads nothing"
        refuse_order(found, f"draft {step}", f"load verify {step}", why)
    _refuse_held_host(found)
    refuse_idle(found)
    return Verdict(True, "plan comes behind the last verify and the draft's own reads, and runs beside its forward.")


def _refuse_held_host(found: Fenced) -> None:
    first, second = programs.STEPS
    refuse_order(found, f"load draft {first}", f"build {second}", "the host stands still before the next step")


move_it_up = Exercise(
    name="move_it_up",
    task="""In this worker the drafted tokens are copied behind the join (`fill tokens`), so `load verify` reads nothing
    that the draft's forward writes. It writes cells of `req_to_token`, which `load draft` reads, and the verify's
    inputs, which the last verify reads. Add the least fence that leaves no race and lets `load verify` run beside
    `draft`. The host must not stand still.""",
    stub=my_early,
    checker=_check_early,
    nudge="""Which op on forward is the last that plan must come behind? A record covers what was issued before it.""",
    right=_early,
    wrong=wrong.MOVE_IT_UP,
    given=programs.EARLY,
)


# 3. A join does not look back.


def my_producer_wait(ops: list[Op]) -> list[Op]:
    """The ops, with a fence that makes the cast safe."""
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "cast ids 1". Fences are
        # EventRecord(event=…, stream=…),
        # StreamWaitEvent(event=…, stream=…),
        # StreamWaitStream(stream=…, on=…)
        answer.append(op)
    return answer


def _producer_wait(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if label(op).startswith("cast ids"):
            answer.append(StreamWaitStream(stream="plan", on="forward"))
        answer.append(op)
    return answer


def _check_producer_wait(answer: Any) -> Verdict:
    found = fenced(programs.EXTENDING, answer)
    refuse_races(found)
    for step in programs.STEPS:
        why = "the table's copy is held for a verify that it does not need"
        refuse_order(found, f"verify {step}", f"load extend {step}", why)
    _refuse_held_host(found)
    refuse_idle(found)
    return Verdict(True, "the ids are cast behind the verify that made them, and the table is copied beside it.")


producer_wait = Exercise(
    name="producer_wait",
    task="""The early event stands. Behind the verify the draft extend is planned: `load extend` copies the table,
    `cast ids` the tokens that the verify accepted, and forward joins before `draft extend`. The join makes forward wait
    for plan. Add the least fence that makes the cast come behind the verify, and leave `load extend` free to run beside
    the verify.""",
    stub=my_producer_wait,
    checker=_check_producer_wait,
    nudge="""Who has to wait here, and for whom? A wait holds what is issued on its stream behind it, and nothing
    before.""",
    right=_producer_wait,
    wrong=wrong.PRODUCER_WAIT,
    given=programs.EXTENDING,
)
