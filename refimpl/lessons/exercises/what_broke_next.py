"""Exercises of the chapter "What broke next": state what is read, find who else reads, and order what became finer."""

from collections.abc import Mapping
from typing import Any

from refimpl.lessons.exercise import Exercise, Verdict
from refimpl.lessons.exercise_order import Rejected, fenced, race_words, refuse_idle, refuse_order, refuse_races
from refimpl.lessons.exercises import what_broke_next_programs as programs
from refimpl.lessons.exercises import what_broke_next_wrong as wrong
from refimpl.order import check, explain
from refimpl.program import Op, Program, StreamWaitStream, accesses, label

# 1. State the reads.


def my_reads() -> dict[str, list[str]]:
    """What each kernel reads."""
    return {
        "load_batch": ["req_to_token"],
        "metadata": [],
        "layers": ["page_table"],
    }


def _reads() -> dict[str, list[str]]:
    return {
        "load_batch": ["req_to_token"],
        "metadata": ["req_to_token"],
        "layers": ["page_table"],
    }


def _check_reads(answer: Any) -> Verdict:
    said = answer() if callable(answer) else answer
    if not isinstance(said, Mapping) or set(said) != set(programs.PARTS):
        raise Rejected(f"let the answer be a dictionary with the keys {', '.join(programs.PARTS)}.")
    unknown = [name for names in said.values() for name in names if name not in programs.BUFFERS]
    if unknown:
        raise Rejected(f"{unknown[0]} is no buffer here: use some of {', '.join(programs.BUFFERS)}.")
    if not check(programs.step_with({"load_batch": said["load_batch"], "metadata": (), "layers": ()}, None)).races:
        raise Rejected("with read_done in front of the step, load_batch should race, and states nothing of the table.")
    if not check(programs.step_with(said, "load_batch")).races:
        raise Rejected("with read_done behind load_batch nothing races: a read that comes behind it is not stated.")
    left = check(programs.step_with(said, "metadata")).races
    if left:
        raise Rejected(f"with read_done behind metadata: {race_words(left[0])} So more is stated than is read.")
    return Verdict(True, "with these reads stated the old place of the event is refuted, and the new one is proved.")


state_the_reads = Exercise(
    name="state_the_reads",
    task="""A backend runs three kernels in a step. `load_batch` copies the rows of the batch from `req_to_token` into
    `page_table`. The graph begins with `metadata`, which was moved into it to save a launch: at each replay it makes
    the page table once more from the rows. Then `layers` look up their keys and values by `page_table`. Schedule
    overwrites `req_to_token` behind the event `read_done`.

    Say what each kernel reads, as far as the text tells. The checker then tries the event at three places: in front of
    the step, behind `load_batch`, behind `metadata`.""",
    stub=my_reads,
    checker=_check_reads,
    nudge="""The argument was that a replay reads the snapshot alone. Which kernel of the graph reads something that is
    no snapshot?""",
    right=_reads,
    wrong=wrong.STATE_THE_READS,
)


# 2. Who else?


def my_pair() -> tuple[str, str, str]:
    """A buffer, and two ops that use it in no order."""
    return "new_seq_lens", "verify 0", "prepare 1"


def _pair() -> tuple[str, str, str]:
    return "new_seq_lens", "verify 0", "pull 1"


def _check_pair(answer: Any) -> Verdict:
    said = answer() if callable(answer) else answer
    if not isinstance(said, tuple | list) or len(said) != 3:
        raise Rejected("let the answer be three names: a buffer and two ops.")
    buffer, *names = said
    program = programs.LATER_READER
    first, second = (_index(program, name) for name in names)
    uses = [_uses(program.ops[index], buffer) for index in (first, second)]
    if not all(uses):
        raise Rejected(f"{names[0]} and {names[1]} do not both use {buffer}.")
    if "writes" not in (*uses[0], *uses[1]):
        raise Rejected(f"{names[0]} and {names[1]} may come in either order: neither of them writes {buffer}.")
    for early, late in ((first, second), (second, first)):
        if explain(program, early, late).ordered:
            raise Rejected(f"{label(program.ops[late])} comes behind {label(program.ops[early])} in every order.")
    return Verdict(True, f"nothing orders {names[0]} and {names[1]}, and one of them writes {buffer}.")


def _index(program: Program, name: object) -> int:
    for index, op in enumerate(program.ops):
        if label(op) == name:
            return index
    raise Rejected(f"there is no op {name!r} in the list.")


def _uses(op: Op, buffer: object) -> tuple[str, ...]:
    found = zip(("reads", "writes"), accesses(op), strict=True)
    return tuple(verb for verb, ranges in found if any(one.buf == buffer for one in ranges))


who_else = Exercise(
    name="who_else",
    task="""`schedule` waits for `verify_done`, and reads the lengths behind it. Then a stream of its own began to read
    them too. Name a buffer and two ops that use it, one of them writing, in an order that no fence makes.""",
    stub=my_pair,
    checker=_check_pair,
    nudge="""For each op that reads `new_seq_lens`: on which stream is it, and what did that stream wait for?""",
    right=_pair,
    wrong=wrong.WHO_ELSE,
    given=programs.LATER_READER,
)


# 3. An event that is finer.


def my_order(ops: list[Op]) -> list[Op]:
    """The ops, with fences that order the seed."""
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "seed 2"; op.step is the
        # step, from 0. Fences are
        # StreamWaitStream(stream="schedule", on="forward"),
        # EventRecord(event=…, stream=…) and
        # StreamWaitEvent(event=…, stream=…).
        answer.append(op)
    return answer


def _order(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if label(op).startswith("seed"):
            answer.append(StreamWaitStream(stream="schedule", on="forward"))
        answer.append(op)
    return answer


def _check_order(answer: Any) -> Verdict:
    program = fenced(programs.FINER, answer)
    refuse_races(program)
    refuse_order(program, "stash 0", "prepare 1", "a step that seeds nothing waits for the stash")
    refuse_idle(program)
    return Verdict(True, "the seed comes behind the stash of the step before, and a step without one is not held.")


finer_event = Exercise(
    name="finer_event",
    task="""The barrier once waited for the whole forward. Now it waits for `read_done`, behind the last read of the
    table. Step 2 seeds a row of `output_tokens_buf`, into which the stash of the step before may still write. Order the
    seed with the least there is; a step that seeds nothing must not be held for it.""",
    stub=my_order,
    checker=_check_order,
    nudge="""What stands last on forward when the host gets to the seed? And who has to come behind it: the step, or the
    seed alone?""",
    right=_order,
    wrong=wrong.FINER_EVENT,
    given=programs.FINER,
)
