"""`python -m refimpl explore`: all orders of stream programs, and the shortest one that shows each race."""

import argparse
import json
import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from refimpl.commands import cases
from refimpl.commands.check import CLEAN, FOUND
from refimpl.program.errors import printable

if TYPE_CHECKING:
    from refimpl.order import Exploration, Overtaking, Witness
    from refimpl.play import Outcome
    from refimpl.program import Program

UNKNOWN = 3
Outcomes: TypeAlias = "dict[tuple[int, int], Outcome]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files, how far to search, and the form of the answer."""
    cases.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one object a line for each program")
    cases.add_bounds(parser, "for one program")
    parser.add_argument(
        "--every-state", action="store_true", help="visit every state, to check the quicker search: it finds the same"
    )
    parser.add_argument(
        "--replay", action="store_true", help="run each witness on the simulated device: the value, right and wrong"
    )
    parser.epilog = (
        "Exit code: 0 clean, 1 a race or a deadlock, 2 bad input, 3 a bound was hit before a verdict was certain. "
        "Verdicts are strict: an ordering that NVIDIA's pages do not promise is not counted on."
    )


def run(args: argparse.Namespace) -> int:
    """Explore every program of every file; print a verdict, counts and a witness for each race."""
    from refimpl.order import explore

    bounds = cases.bounds(args)
    programs = cases.programs(args)
    progress = cases.Progress()
    found: list[Exploration] = []
    disputed: list[str] = []
    for number, program in enumerate(programs, 1):
        where = f"program {number} of {len(programs)}, {program.id}"
        progress.say(where)
        exploration = explore(
            program,
            bounds=bounds,
            every_state=args.every_state,
            tell=lambda states, where=where: progress.say(f"{where}: {states} states"),  # type: ignore[misc]
        )
        progress.clear()
        found.append(exploration)
        outcomes = _replayed(program, exploration) if args.replay else {}
        if args.json:
            print(json.dumps(_json(exploration, outcomes)))
            continue
        text = "\n".join(map(printable, _lines(exploration, outcomes)))
        if program.disputed:
            disputed.append(text)
        else:
            print(text)
    if disputed:
        print("Disputed, since NVIDIA's pages or versions differ; explored strictly:")
        print("\n".join(disputed))
    if not args.json:
        print(_summary(found))
    return _code(found)


def _code(found: list["Exploration"]) -> int:
    from refimpl.program import Verdict

    if any(exploration.verdict in (Verdict.RACE, Verdict.DEADLOCK) for exploration in found):
        return FOUND
    return UNKNOWN if any(exploration.verdict is None for exploration in found) else CLEAN


def _replayed(program: "Program", exploration: "Exploration") -> Outcomes:
    """What each witness does to the values; nothing of a program that cannot be run to its end."""
    from refimpl.device import sim
    from refimpl.play import outcome, play

    witnesses = {race.pair: race.witness for race in exploration.races if race.witness is not None}
    if exploration.deadlock is not None or not witnesses:
        return {}
    right = play(program)
    return {pair: outcome(right, play(program, sim().Replay(witness.id)), pair) for pair, witness in witnesses.items()}


def _json(exploration: "Exploration", outcomes: Outcomes) -> dict[str, Any]:
    """With each race's outcome in words, and of its first wrong value what is right and what came out."""
    out = exploration.to_json()
    for race, line in zip(exploration.races, out["races"], strict=True):
        if race.pair in outcomes:
            found = outcomes[race.pair]
            first = found.differences[0] if found.differences else None
            line |= {"outcome": found.words, "right": first and first.right, "got": first and first.got}
    return out


def _lines(exploration: "Exploration", outcomes: Outcomes) -> Iterator[str]:
    verdict = "unknown" if exploration.verdict is None else exploration.verdict
    yield f"{exploration.id}: {verdict}"
    yield f"  {_counts(exploration)}"
    if exploration.bound is not None:
        yield f"  {exploration.bound}: there may be more to find"
    if exploration.deadlock is not None:
        yield f"  deadlock: {exploration.deadlock.words}"
    for race in exploration.races:
        yield from _race_lines(race)
        if race.pair in outcomes:
            yield f"    {outcomes[race.pair].words}"


def _counts(exploration: "Exploration") -> str:
    from refimpl.order import spelled

    of = "" if exploration.all_states is None else f" of {spelled(exploration.all_states)}"
    words = f"visited {spelled(exploration.states)}{of} states by {spelled(exploration.transitions)} transitions"
    for name in ("orders", "traces"):
        count = getattr(exploration, name)
        words += f"; {name}: " + ("not counted" if count is None else spelled(count))
    return words


def _race_lines(race: "Overtaking") -> Iterator[str]:
    yield f"  {race}"
    if race.witness is None:
        yield "    the time was up before an order was found that shows it: raise --seconds"
        return
    yield f"    {_claim(race.witness)}"
    for step in _grouped(race.witness.steps):
        yield from textwrap.wrap(step, 116, initial_indent="      ", subsequent_indent="        ")


def _claim(witness: "Witness") -> str:
    changes = f"{witness.switches} change" + ("" if witness.switches == 1 else "s")
    least = ", the fewest" if witness.shortest else ", perhaps not the fewest"
    same = witness.early == witness.late
    overtakes = "the later node before the earlier" if same else f"op {witness.early} before op {witness.late}"
    return f"schedule {witness.id} has {overtakes} ({changes} of lane{least}):"


def _grouped(steps: tuple[str, ...]) -> Iterator[str]:
    """Steps in words, what one lane does in a row on one line."""
    split = (step.partition(": ") for step in steps)
    for lane, run_ in groupby(split, key=lambda parts: parts[0]):
        yield f"{lane}: " + ", ".join(what for _, _, what in run_)


def _summary(found: list["Exploration"]) -> str:
    from refimpl.program import Verdict

    count = len(found)
    wrong = sum(exploration.verdict in (Verdict.RACE, Verdict.DEADLOCK) for exploration in found)
    unknown = sum(exploration.verdict is None for exploration in found)
    words = f"{count} program" + ("" if count == 1 else "s") + f", {wrong} with a race or a deadlock"
    return words + (f", {unknown} unknown" if unknown else "")
