"""Exercises of the chapter "chained publish": what an event still holds, and what no event of that name can hold."""

from collections.abc import Mapping
from typing import Any

from refimpl.lessons.exercise import Exercise, Verdict
from refimpl.lessons.exercise_order import Rejected, fenced, refuse_idle, refuse_order, refuse_races
from refimpl.lessons.exercises import chained_publish_programs as programs
from refimpl.lessons.exercises import chained_publish_wrong as wrong
from refimpl.order import check, explain
from refimpl.program import EventRecord, Op, Program, StreamWaitEvent, StreamWaitStream, accesses, label

# 1. Which publishes is a reader sure to find?


def my_found() -> dict[int, set[int]]:
    """From each read to the writes that come before it in every order."""
    return {5: set(), 9: set(), 16: set()}


def _found() -> dict[int, set[int]]:
    return {5: {2}, 9: {0, 2, 6}, 16: {0, 2, 6, 10, 12}}


def _check_found(answer: Any) -> Verdict:
    given = programs.VISIBLE
    said = answer() if callable(answer) else answer
    if not isinstance(said, Mapping):
        kind = type(said).__name__
        raise Rejected(f"the answer gives {kind}: let it give a dictionary from each read to a set of writes.")
    truth = _sure(given)
    if set(said) != set(truth):
        raise Rejected(f"the keys are {list(said)}: they must be the reads, ops {', '.join(map(str, truth))}.")
    for read, writes in truth.items():
        _refuse_other(given, read, said[read], writes)
    return Verdict(True, "a record replaces what the event held; a wait in front of it carries that over.")


def _sure(program: Program) -> dict[int, set[int]]:
    """From each op that reads to the ops that write and come before it in every order."""
    touched = [accesses(op) for op in program.ops]
    reads, writes = ([k for k, sides in enumerate(touched) if sides[side]] for side in (0, 1))
    return {at: {w for w in writes if w < at and explain(program, w, at).ordered} for at in reads}


def _refuse_other(program: Program, read: int, said: object, truth: set[int]) -> None:
    if not isinstance(said, set | frozenset | list | tuple):
        raise Rejected(f"the answer for op {read} is {said!r}: give a set of op indices.")
    name = label(program.ops[read])
    for write in sorted(set(said) - truth, key=str):
        if not isinstance(write, int) or not 0 <= write < len(program.ops) or not accesses(program.ops[write])[1]:
            raise Rejected(f"op {read}, {name}: {write!r} is not the op index of a write.")
        raise Rejected(f"op {read}, {name}: {label(program.ops[write])} may still come after it.")
    for write in sorted(truth - set(said)):
        raise Rejected(f"op {read}, {name}: {label(program.ops[write])} comes before it in every order.")


what_is_sure = Exercise(
    name="what_is_sure",
    task="""One event, `publish_ready`, is recorded on two streams. Say for each of the three reads (ops 5, 9 and 16)
    which of the writes before it come first in every order: a set of op indices, of 0, 2, 6, 10 and 12.""",
    stub=my_found,
    checker=_check_found,
    nudge="""At each record, note the stream and how far it has come; forget the note before. A wait carries the note
    over to the stream that waits, with all that this stream has carried so far.""",
    right=_found,
    wrong=wrong.WHAT_IS_SURE,
    given=programs.VISIBLE,
)


# 2. Keep the capture.


def my_capture(ops: list[Op]) -> list[Op]:
    """The ops, with fences that make the pull safe."""
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "seed 2" or
        # "record(publish_ready)", and op.stream its stream. Fences are
        # StreamWaitEvent(event="publish_ready", stream=…),
        # StreamWaitStream(stream=…, on=…), EventRecord(event=…, stream=…)
        answer.append(op)
    return answer


def _capture(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if isinstance(op, EventRecord) and op.stream == "schedule":
            answer.append(StreamWaitEvent(event="publish_ready", stream="schedule"))
        answer.append(op)
    return answer


def _check_capture(answer: Any) -> Verdict:
    program = fenced(programs.KEEP, answer)
    refuse_races(program)
    refuse_order(program, "publish 1", "build 2", "the host stands still for a forward")
    refuse_order(program, "draft_extend 1", "pull 2", "the lengths were there a draft extend earlier")
    refuse_idle(program)
    return Verdict(True, "the pull comes behind both writes, and behind nothing that it does not need.")


keep_the_capture = Exercise(
    name="keep_the_capture",
    task="""The torn window. `pull 2` takes both lengths to the host, behind a wait for `publish_ready`, and finds the
    seed's capture in the event. Return the ops with the least fence that makes the pull safe. Neither the host may
    stand still for forward, nor the pull come after `draft_extend 1`.""",
    stub=my_capture,
    checker=_check_capture,
    nudge="""The capture that is lost is still there right before the second record. Who could take it over, so that the
    new capture contains it?""",
    right=_capture,
    wrong=wrong.KEEP_THE_CAPTURE,
    given=programs.KEEP,
)


# 3. The row was somebody else's.


def my_seed(ops: list[Op]) -> list[Op]:
    """The ops, with fences that make the seeds last."""
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "stash 1" or "seed publish 2".
        # Fences as before; a new event may have any name.
        answer.append(op)
    return answer


def _seed(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if label(op) == "seed publish 2":
            answer.append(StreamWaitStream(stream="schedule", on="forward"))
        answer.append(op)
    return answer


def _check_seed(answer: Any) -> Verdict:
    program = fenced(programs.REUSED, answer)
    refuse_races(program)
    refuse_order(program, "publish 1", "build 2", "the host stands still for a forward")
    refuse_idle(program)
    return Verdict(
        True, "the redundant forward writes its rows before the seeds, in every order, and the host is free."
    )


seed_a_used_row = Exercise(
    name="seed_a_used_row",
    task="""Row 2 changes hands: forward 1 is redundant for its last owner, and still publishes and stashes into it. Now
    the seeds must last, both of them. Return the ops with the least fence for that; the host must not stand still
    for forward. The relay's reads come behind fences that stand already, unless their event lost its capture.""",
    stub=my_seed,
    checker=_check_seed,
    nudge="""What is the last thing that forward 1 writes into the row? Has anything been recorded behind it?""",
    right=_seed,
    wrong=wrong.SEED_A_USED_ROW,
    given=programs.REUSED,
)


# 4. A worker that is not in the table.


def my_row() -> dict[str, set[str]]:
    """From each fix to the races that it leaves."""
    return {"overwrite": set(), "chain": set(), "wait_stream": set()}


def _row() -> dict[str, set[str]]:
    return {
        "overwrite": {"RAW new_seq_lens_buf", "WAW new_seq_lens_buf"},
        "chain": {"WAW new_seq_lens_buf"},
        "wait_stream": set(),
    }


def _check_row(answer: Any) -> Verdict:
    said = answer() if callable(answer) else answer
    if not isinstance(said, Mapping) or set(said) != set(programs.FIXES):
        keys = ", ".join(programs.FIXES)
        raise Rejected(f"the answer must be a dictionary with the keys {keys}, each with a set of races.")
    for fix in programs.FIXES:
        races = {f"{race.kind} {race.bytes.buf}" for race in check(programs.stash_first(fix)).races}
        given = said[fix]
        if not isinstance(given, set | frozenset | list | tuple):
            raise Rejected(f"{fix}: the answer is {given!r}: give a set of races, such as 'WAW output_tokens_buf'.")
        if missing := sorted(races - set(given)):
            raise Rejected(f"{fix}: {missing[0]} is missing.")
        if more := sorted(set(given) - races, key=str):
            raise Rejected(f"{fix}: {more[0]} is no race here.")
    return Verdict(True, "what stands in front of read_done is covered by the barrier, and nothing behind it.")


another_row = Exercise(
    name="another_row",
    task="""A row for the table of nine. This worker stashes first, then records `read_done`, and publishes last;
    schedule waits for `read_done` before it seeds. Listed is `overwrite`, the program without a fix. Say for it and for
    each fix which races it leaves, such as `"WAW output_tokens_buf"`.""",
    stub=my_row,
    checker=_check_row,
    nudge="""Whoever waits for `read_done` waits for all that stands in front of its record on forward. What stands
    behind it?""",
    right=_row,
    wrong=wrong.ANOTHER_ROW,
    given=programs.stash_first(programs.OVERWRITE),
)
