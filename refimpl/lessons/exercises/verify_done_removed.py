"""Exercises of the chapter "verify_done removed": which fence may go, where it belongs, and how far it reaches."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

from refimpl.lessons.exercise import Exercise, Verdict
from refimpl.lessons.exercise_order import (
    BLOCKING,
    Fenced,
    Rejected,
    fenced,
    name,
    race_words,
    refuse_idle,
    refuse_races,
)
from refimpl.lessons.exercises import verify_done_removed_programs as programs
from refimpl.lessons.exercises import verify_done_removed_wrong as wrong
from refimpl.lessons.timelines.proofs import fences_by_name, without
from refimpl.order import check
from refimpl.program import Op, StreamWaitStream, label

# 1. Which fences may go?


def my_redundant() -> set[str]:
    """The fences that may be left out, all of them at once."""
    return set()


def _redundant() -> set[str]:
    return {"host synchronizes with verify_done"}


def _check_redundant(answer: Any) -> Verdict:
    names = _names(answer() if callable(answer) else answer)
    left = without(programs.BOTH, names)
    races = check(left).races
    if races:
        raise Rejected(f"without {_listed(names)} there is a race: {race_words(races[0])}")
    for fence in fences_by_name(left):
        if not check(without(left, [fence])).races:
            raise Rejected(f"one more may go: without “{fence}” too, no order is wrong.")
    return Verdict(True, "without it no order is wrong, and each fence that is left is needed.")


def _names(said: Any) -> list[str]:
    if isinstance(said, str) or not isinstance(said, Iterable):
        raise Rejected(f"the answer gives {type(said).__name__}: let it give a set of names.")
    names, known = list(said), fences_by_name(programs.BOTH)
    for one in names:
        if one not in known:
            raise Rejected(f"{one!r} is no fence of this program: they are {_listed(known)}.")
    return names


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"“{one}”" for one in names)


which_fence = Exercise(
    name="which_fence",
    task="""Three steps of DFLASH's loop with both fences; step 2 is a prefill, in which the row gets a new owner. The
    fences are “host synchronizes with verify_done”, “schedule waits for forward” and “forward waits for schedule”. Name
    those that may go, all at once and in every step, so that still no order is wrong. Name all of them.""",
    stub=my_redundant,
    checker=_check_redundant,
    nudge="""For each op that writes `req_to_token`, go up the list to the last op that reads it, and note which fences
    you pass. A fence may go if every write passes another.""",
    right=_redundant,
    wrong=wrong.WHICH_FENCE,
    given=programs.BOTH,
)


# 2. Put the barrier where it belongs.


def my_barrier(ops: list[Op]) -> list[Op]:
    """The loop's ops, with the barrier."""
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "free 0" or "replay 1"; op.step
        # is the step, from 0. Fences are
        # StreamWaitStream(stream=…, on=…), EventSync(event=…),
        # EventRecord(event=…, stream=…), StreamWaitEvent(event=…, stream=…)
        answer.append(op)
    return answer


def _barrier(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        answer.append(op)
        if label(op).startswith("replay"):
            answer.append(StreamWaitStream(stream="schedule", on="forward"))
    return answer


def _check_barrier(answer: Any) -> Verdict:
    program = fenced(programs.RESULTS, answer)
    _refuse_held(program)
    refuse_races(program)
    refuse_idle(program)
    return Verdict(True, "both tables are overwritten behind the reads of the forward in flight, and the host is free.")


def _refuse_held(answer: Fenced) -> None:
    for index in answer.added:
        if isinstance(answer.program.ops[index], BLOCKING):
            raise Rejected(f"{name(answer.program, index)}, holds the host: let a stream wait in its place.")


place_the_barrier = Exercise(
    name="place_the_barrier",
    task="""The loop with a sliding window: behind the launch of step N the host reads the results of step N−1, and
    `free` writes the table `full_to_swa`, which `load` reads too. Return the ops with the least fence that leaves
    no race on either table. No fence of yours may hold the host. Keep the ops in their order.""",
    stub=my_barrier,
    checker=_check_barrier,
    nudge="""Two ops write shared tables while a forward is in flight: one before the next launch, one behind it. Which
    place comes before both, and behind the reads?""",
    right=_barrier,
    wrong=wrong.PLACE_THE_BARRIER,
    given=programs.RESULTS,
)


# 3. How does the barrier reach the plan stream?


def my_fork(ops: list[Op]) -> list[Op]:
    """The ops, with one more edge a step."""
    answer: list[Op] = []
    for op in ops:
        # label(op) is its name, such as "append 1"; op.step is the step.
        answer.append(op)
    return answer


def _fork(ops: list[Op]) -> list[Op]:
    answer: list[Op] = []
    for op in ops:
        if label(op).startswith("append") and op.step != 0:
            answer.append(StreamWaitStream(stream="plan", on="schedule"))
        answer.append(op)
    return answer


def _check_fork(answer: Any) -> Verdict:
    program = fenced(programs.PLAN, answer)
    _refuse_held(program)
    refuse_races(program)
    refuse_idle(program)
    return Verdict(True, "plan writes behind the reads of the forward in flight, and the host is free.")


reach_the_plan = Exercise(
    name="reach_the_plan",
    task="""With a plan stream, `append` runs there. The barrier holds `schedule` alone, and `schedule` waits for plan's
    write before it goes on. Return the ops with one more edge a step, so that plan writes after the last
    forward's reads. The host must not stand still for it.""",
    stub=my_fork,
    checker=_check_fork,
    nudge="""Whoever waits for a stream waits for what that stream has waited for.""",
    right=_fork,
    wrong=wrong.REACH_THE_PLAN,
    given=programs.PLAN,
)


# 4. How many cells ahead?


def my_reserve(committed: int, block: int) -> int:
    """The length up to which a row must have its cells."""
    return committed


def _reserve(committed: int, block: int) -> int:
    return committed + 2 * block


_BLOCKS, _LAUNCHES = (2, 4), 4


def _check_reserve(answer: Any) -> Verdict:
    if not callable(answer):
        raise Rejected(f"the answer is of type {type(answer).__name__}: give the function itself.")
    for block in _BLOCKS:
        spare = [
            left
            for taken in product(range(1, block + 1), repeat=_LAUNCHES)
            for left in _left_over(answer, block, taken)
        ]
        if min(spare) > 0:
            raise Rejected(f"a row of blocks of {block} has {min(spare)} more cells than any step can reach.")
    return Verdict(True, "no step writes behind the cells of its row, and the worst case uses all of them.")


def _left_over(answer: Callable[[int, int], int], block: int, taken: tuple[int, ...]) -> list[int]:
    """Cells behind the block of each step, where step n is prepared while the tokens of step n−1 are on their way."""
    lengths, spare, cells = [10], [], 0
    for step, more in enumerate(taken):
        known = lengths[max(0, step - 1)]
        cells = max(cells, answer(known, block))
        end = lengths[-1] + block
        if end > cells:
            said = f"the host knows of {known} tokens, step {step} starts at {lengths[-1]} and verifies up to {end}"
            raise Rejected(f"{said}, with cells up to {cells}: it writes where no cell is.")
        spare.append(cells - end)
        lengths.append(lengths[-1] + more)
    return spare


two_blocks = Exercise(
    name="two_blocks",
    task="""The host prepares step N while step N−1 runs. `committed` is the length that it knows: of before step N−1.
    Every step takes between 1 and `block` tokens, and its verify writes K and V for `block` cells from the length that
    it starts at. Return the length up to which the row must have cells before step N is launched: enough in every case,
    and no more than the worst one needs.""",
    stub=my_reserve,
    checker=_check_reserve,
    nudge="""How long may the request be when step N starts, if step N−1 takes all it can? And how far does step N write
    from there?""",
    right=_reserve,
    wrong=wrong.TWO_BLOCKS,
)
