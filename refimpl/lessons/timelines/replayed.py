"""A race's shortest order, replayed on the simulated device: as a process of its own, with a program on its input."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from refimpl.lessons.timelines.proofs import races
from refimpl.order import Race, lower
from refimpl.order.explore_moves import Moves, bits, moves_of
from refimpl.order.explore_witness import Witness, witness
from refimpl.play import Outcome, compare
from refimpl.program import Program, label, program_from_json

HOST_LANE = "host"
_OP = re.compile(r"op \d+ '([^']*)'")
_NUMBER = re.compile(r"^op \d+ ")
"""What the explorer and the replay call an op: here its name says enough."""
MOST_TRIED = 20
"""Races whose orders are replayed, for one that changes a value."""
MOST_WRONG = 4
"""Wrong values that are told."""


def shortest(program: Program, buffer: str | None = None, second: str | None = None) -> dict[str, Any]:
    """The fields of a ``Counterexample``: of such races the first whose order changes what is read.

    Args: as of ``proofs.races``; the program has such a race.
    """
    moves, first = moves_of(lower(program)), None
    for race in races(program, buffer, second)[:MOST_TRIED]:
        order = _witness(moves, race)
        outcome = compare(program, order.id, (race.first.op, race.second.op))
        first = first or (race, order, outcome)
        if any(one.op is not None for one in outcome.differences):
            return _told(program, race, order, outcome)
    assert first is not None, "the caller has seen a race"
    return _told(program, *first)


def _witness(moves: Moves, race: Race) -> Witness:
    """Of the units of the two ops that conflict, the order with the fewest changes of lane."""
    orders = [
        witness(moves, late, early)
        for early, move in enumerate(moves.all)
        if move.op == race.first.op
        for late in bits(moves.conflicts[early])
        if moves.all[late].op == race.second.op
    ]
    return min(orders, key=lambda order: (order.switches, len(order.steps)))


def _told(program: Program, race: Race, order: Witness, outcome: Outcome) -> dict[str, Any]:
    first, second = (label(program.ops[touch.op]) for touch in (race.first, race.second))
    wrong = [_sentence(one.sentence(order.id)) for one in outcome.differences[:MOST_WRONG]]
    return {
        "kind": str(race.kind),
        "buffer": race.bytes.buf,
        "first": first,
        "second": second,
        "schedule": order.id,
        "steps": list(_grouped(order.steps)),
        "wrong": wrong,
    }


def _grouped(steps: tuple[str, ...]) -> Iterator[str]:
    """Steps in words, what one lane does in a row on one line; of the host's calls the last."""
    split = (step.partition(": ") for step in steps)
    for lane, run in groupby(split, key=lambda parts: parts[0]):
        names = [_NUMBER.sub("", what) for _, _, what in run]
        yield f"{lane}: " + (f"all calls up to {names[-1]}" if lane == HOST_LANE else ", ".join(names))


def _sentence(words: str) -> str:
    named = _OP.sub(r"\1", words)
    return f"{named[0].upper()}{named[1:]}."


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    print(json.dumps(shortest(program_from_json(given["program"]), given["buffer"], given["second"])))
