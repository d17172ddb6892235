"""Exercises of the chapter "read_done in CUDA graphs": where the last read is, who says so, and to which launch it
belongs."""

from collections.abc import Mapping, Sequence
from typing import Any

from refimpl.fences import SharedReadBoundary
from refimpl.lessons.exercise import Exercise, Verdict
from refimpl.lessons.exercise_order import Rejected, race_words, refuse_order, refuse_races
from refimpl.lessons.exercises import read_done_in_graphs_programs as programs
from refimpl.lessons.exercises import read_done_in_graphs_wrong as wrong
from refimpl.lessons.exercises.read_done_in_graphs_mailbox import DECODES, loop
from refimpl.order import check
from refimpl.program import ProgramError

STEPS = 4
"""Launches that exercise 4 names events for."""

# 1. Who reads last, and where?


def my_boundaries() -> dict[str, str]:
    """Where each backend reads the shared tables last."""
    return {
        "snapshot": "pre_replay",
        "metadata captured": "pre_replay",
        "translation in each layer": "pre_replay",
        "a kernel behind the graph": "pre_replay",
    }


def _boundaries() -> dict[str, str]:
    return {
        "snapshot": "pre_replay",
        "metadata captured": "in_replay",
        "translation in each layer": "post_replay",
        "a kernel behind the graph": "unknown",
    }


def _check_boundaries(answer: Any) -> Verdict:
    said = answer() if callable(answer) else answer
    if not isinstance(said, Mapping) or set(said) != set(programs.BACKENDS):
        raise Rejected(f"give a dictionary with the keys {', '.join(map(repr, programs.BACKENDS))}.")
    for name, declared in said.items():
        _refuse_boundary(name, _boundary(name, declared))
    return Verdict(True, "each backend's event stands behind its last read, and behind nothing that need not be over.")


def _boundary(name: str, declared: object) -> SharedReadBoundary:
    try:
        return SharedReadBoundary(str(declared))
    except ValueError:
        raise Rejected(f"{name!r}: {declared!r} is none of {', '.join(SharedReadBoundary)}.") from None


def _refuse_boundary(name: str, declared: SharedReadBoundary) -> None:
    backend = programs.BACKENDS[name]
    races = check(programs.step_of(backend, declared)).races
    if races:
        raise Rejected(f"{name!r} as {declared}: {race_words(races[0])}")
    earliest = next(one for one in SharedReadBoundary if not check(programs.step_of(backend, one)).races)
    if earliest is not declared:
        raise Rejected(f"{name!r} as {declared}: right, and later than needed; schedule is held for nothing.")


declare_the_boundary = Exercise(
    name="declare_the_boundary",
    task="""Four attention backends. `snapshot`: `load_batch` copies rows of `req_to_token` and of `full_to_swa`, and
    the graph reads the copies. `metadata captured`: a kernel at the beginning of the graph reads both tables again.
    `translation in each layer`: each sliding layer of the graph looks up `full_to_swa`. `a kernel behind the graph`:
    behind the replay, and outside of the runner, a kernel reads `req_to_token` once more.

    Declare for each the earliest boundary that is right: `pre_replay`, `in_replay` (a node behind the graph's metadata
    kernel), `post_replay`, or `unknown`, which makes the barrier wait for the whole stream.""",
    stub=my_boundaries,
    checker=_check_boundaries,
    nudge="""Ask of each only where the last read of a shared table is. An event can be recorded by the runner before
    its replay, within it or right behind it, and nowhere else.""",
    right=_boundaries,
    wrong=wrong.DECLARE_THE_BOUNDARY,
)


# 2. Where in the graph?


def my_deps() -> list[str]:
    """The nodes that the record node comes behind."""
    return []


def _deps() -> list[str]:
    return ["translate"]


def _check_deps(answer: Any) -> Verdict:
    said = answer() if callable(answer) else answer
    if isinstance(said, str) or not isinstance(said, Sequence) or not all(isinstance(one, str) for one in said):
        raise Rejected("give a list of names of nodes.")
    try:
        program = programs.forked(said)
    except ProgramError as error:
        raise Rejected(f"that is no graph: {error}.") from None
    races = check(program).races
    if races:
        raise Rejected(race_words(races[0]))
    layers = sorted(name for name in _behind(said) if name.startswith("layer"))
    if layers:
        raise Rejected(f"right, and too late: the record waits for {layers[0]}, which reads no shared table.")
    return Verdict(True, "in both replays the record comes behind the last live read, and no layer holds it up.")


def _behind(names: Sequence[str]) -> set[str]:
    """These nodes, and those that come before them."""
    deps = {node.name: node.deps for node in programs.FORKED}
    found, todo = set[str](), list(names)
    while todo:
        name = todo.pop()
        found.add(name)
        todo += deps[name]
    return found


plant_the_node = Exercise(
    name="plant_the_node",
    task="""A captured graph has four kernels. `gather rows` reads `req_to_token` and makes the page table. `translate`
    comes behind it and reads `full_to_swa`. `layer 1` comes behind `gather rows`; `layer 2` comes behind `layer 1` and
    `translate`. So `translate` and `layer 1` may run side by side.

    A fifth node is to record `read_done`. Behind which nodes? Give their names: the record must come behind every read
    of a shared table, and must not wait for a layer.""",
    stub=my_deps,
    checker=_check_deps,
    nudge="""A node without dependencies runs when the graph begins. In a graph nothing follows from the order in which
    you write the nodes down.""",
    right=_deps,
    wrong=wrong.PLANT_THE_NODE,
)


# 3. Take the event.


def my_barrier(runner: Any, schedule: Any, forward: Any) -> None:
    """Holds schedule until forward has read the tables."""
    event = runner.shared_read_done_event
    if event is not None:
        schedule.wait_event(event)


def _barrier(runner: Any, schedule: Any, forward: Any) -> None:
    event, runner.shared_read_done_event = runner.shared_read_done_event, None
    if event is not None:
        schedule.wait_event(event)
    else:
        schedule.wait_stream(forward)


def _check_barrier(answer: Any) -> Verdict:
    if not callable(answer):
        raise Rejected("give the function itself.")
    made = loop(answer)
    refuse_races(made)
    for step in range(len(DECODES)):
        if DECODES[step]:
            refuse_order(made, f"replay {step}", f"prepare {step + 1}", "the replay reads its snapshot alone")
    return Verdict(True, "each step's own reads come before the next overwrite, and a replay holds nobody.")


take_the_event = Exercise(
    name="take_the_event",
    task="""Write `_apply_war_barrier`. It is called behind the launches of each step, before schedule overwrites
    `req_to_token`. `runner.shared_read_done_event` is the mailbox: a decode puts its `read_done` there, recorded behind
    `load_batch`; a prefill reads the table too, and puts nothing there. `schedule` and `forward` have `wait_event` and
    `wait_stream`.

    The checker calls your function behind a decode, two prefills and a decode, and judges the program that comes of it:
    no overwrite may come before a read of its own step, and schedule must not be held for a replay.""",
    stub=my_barrier,
    checker=_check_barrier,
    nudge="""What is in the mailbox behind a prefill that follows a decode? And who could have taken it out?""",
    right=_barrier,
    wrong=wrong.TAKE_THE_EVENT,
)


# 4. One event, several launches.


def my_event(step: int) -> str:
    """The event that the record node of this step's replay arms."""
    return "read_done"


def _event(step: int) -> str:
    return f"read_done {step % 2}"


def _check_event(answer: Any) -> Verdict:
    if not callable(answer):
        raise Rejected("give the function itself.")
    names = [answer(step) for step in range(STEPS)]
    if not all(isinstance(name, str) and name for name in names):
        raise Rejected(f"the answers are {names}: give a name for each step.")
    stuck = check(programs.handed_over(names)).deadlock
    if stuck is not None:
        raise Rejected(f"nobody goes on: {stuck.words}.")
    if len(set(names)) > 2:
        raise Rejected(f"{len(set(names))} events: fewer do, and each one is captured in a graph of its own.")
    return Verdict(True, "a copy's wait is bound to its own step's launch, with two events that take turns.")


one_event_two_launches = Exercise(
    name="one_event_two_launches",
    task="""The host launches replay N+1 before it calls the wait of copy N. Replay N+1 needs what stands behind copy N.
    With one event for all launches the wait takes what replay N+1 is to record, and both stand still for good (listed
    below for two launches). Keep the order of the calls. Say for each step which event the record node of its replay
    arms and its copy waits for: with as few events as can be.""",
    stub=my_event,
    checker=_check_event,
    nudge="""At the call of copy N's wait, which launches have armed events since replay N?""",
    right=_event,
    wrong=wrong.ONE_EVENT_TWO_LAUNCHES,
    given=programs.handed_over(["read_done", "read_done"]),
)
