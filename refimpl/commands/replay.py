"""`python -m refimpl replay`: one order of a stream program on the simulated device, with the values that come out."""

import argparse
import json
import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from refimpl.commands import cases
from refimpl.commands.check import CLEAN, FOUND, named
from refimpl.program.errors import ProgramError, UserError, printable

if TYPE_CHECKING:
    from refimpl.order import Deadlock, Overtaking
    from refimpl.play import Outcome
    from refimpl.program import Program

MOST_RACES = 50
"""Races whose shortest orders are tried, for one that changes a value."""
MOST_LINES = 100
"""Lines of an order, of wrong values and of reads that are printed; --json has all of them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file, which of its programs, and the order."""
    parser.add_argument(
        "files",
        nargs=1,
        metavar="FILE",
        help='a stream program as JSON, or {"cases": [program, ...]}; - is standard input',
    )
    parser.add_argument("--case", metavar="ID", help="the program with this id, where the file has several")
    order = parser.add_mutually_exclusive_group()
    order.add_argument("--schedule", metavar="ID", help="the order, as explore or a run names it")
    order.add_argument("--seed", type=_seed, metavar="N", help="an order that is drawn by this number")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.epilog = (
        "Without an order: the shortest one that shows the first race which changes a value, or the order of issue "
        "where no race is found. "
        "Exit code: 0 every value is right, 1 a wrong value or a deadlock, 2 bad input."
    )


def run(args: argparse.Namespace) -> int:
    """Run the program in the order; print the order and what is wrong, beside what is right."""
    from refimpl.order import build, deadlock

    program = _chosen(args)
    stuck = deadlock(build(program))
    if stuck is not None:
        _print_deadlock(program, stuck, args.json)
        return FOUND
    try:
        race, outcome = _chosen_order(program, args)
    except UserError as error:
        raise UserError(f"{named(args.files[0])}, case {program.id!r}: {error}") from None
    if args.json:
        print(json.dumps({"id": program.id, "deadlock": None, **outcome.to_json()}))
    else:
        print("\n".join(map(printable, _lines(program, race, outcome))))
    return FOUND if outcome.differences else CLEAN


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number from 0")
    return int(text)


def _chosen(args: argparse.Namespace) -> "Program":
    programs = cases.programs(args)
    if len(programs) > 1:
        raise ProgramError(f"has {len(programs)} programs: name one with --case", file=named(args.files[0]))
    return programs[0]


def _chosen_order(program: "Program", args: argparse.Namespace) -> "tuple[Overtaking | None, Outcome]":
    from refimpl.device import sim
    from refimpl.play import compare, outcome, play

    if args.seed is not None:
        return None, outcome(play(program), play(program, sim().Adversary(seed=args.seed)))
    shown = _shown_race(program) if args.schedule is None else None
    return shown or (None, compare(program, args.schedule or ""))


def _shown_race(program: "Program") -> "tuple[Overtaking, Outcome] | None":
    """The first race whose shortest order changes a value, of those tried; else the first: what it changed was written
    again before anyone read it."""
    from refimpl.order import explore
    from refimpl.play import compare

    first = None
    for race in explore(program, count=False).races[:MOST_RACES]:
        if race.witness is not None:
            outcome = compare(program, race.witness.id, race.pair)
            first = first or (race, outcome)
            if outcome.differences:
                return race, outcome
    return first


def _print_deadlock(program: "Program", stuck: "Deadlock", as_json: bool) -> None:
    if as_json:
        found = {"id": program.id, "deadlock": {"ops": list(stuck.ops), "words": stuck.words}}
        print(json.dumps({**found, "schedule": None, "steps": [], "differences": []}))
    else:
        print(printable(f"{program.id}: deadlock in every order: {stuck.words}"))


def _lines(program: "Program", race: "Overtaking | None", outcome: "Outcome") -> Iterator[str]:
    yield program.id if race is None else f"{program.id}: {race}"
    yield f"  schedule {outcome.got.id}:" if outcome.got.id else "  in the order of issue:"
    yield from _first(list(_order(outcome)))
    yield from _first([f"  {one.sentence(outcome.id)}" for one in outcome.differences])
    if len(outcome.differences) > 1:
        yield f"  in all, {len(outcome.differences)} wrong values"
    if not outcome.differences:
        yield from _first([f"  {seen}" for seen in outcome.got.reads])
        yield f"  {outcome.words}" if outcome.got.id else "  these are the values that the program means"


def _first(lines: list[str]) -> Iterator[str]:
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"  and {len(lines) - MOST_LINES} lines more, which --json has"


def _order(outcome: "Outcome") -> Iterator[str]:
    """The steps that the schedule names, what one lane does in a row on one line."""
    steps = outcome.named
    for where, steps_ in groupby(steps, key=lambda step: step.where):
        line = f"{where}: " + ", ".join(step.what for step in steps_)
        yield from textwrap.wrap(line, 116, initial_indent="    ", subsequent_indent="      ")
    if len(steps) < len(outcome.got.steps):
        yield "    then each op as soon as it may, in the order of issue"
