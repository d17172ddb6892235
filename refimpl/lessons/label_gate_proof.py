"""What can be said about each gate: the checker's verdict, an order, and the values that come out."""

import re
from dataclasses import dataclass

from refimpl.device import sim
from refimpl.lessons.label_gate import ADDED, SECOND, Gate, gate_program
from refimpl.order import check, explain, explore
from refimpl.play import Seen, play
from refimpl.program import Verdict, label

HEADS = ("gate", "checker", "label first", "gate 2 finds the labels")


@dataclass(frozen=True)
class Finding:
    """One gate, judged.

    Args:
        gate: which.
        verdict: of the checker, over every legal order.
        ordered: whether a path leads from the label's write to the second run.
        finds: what the second run reads, in the order of issue first, then under the shortest bad order of each race.
    """

    gate: Gate
    verdict: Verdict
    ordered: bool
    finds: tuple[str, ...]


def finding(gate: Gate) -> Finding:
    """Judges one gate; two orders of a program without a race give the same values, so that one run of it is enough."""
    program = gate_program(gate)
    at = {label(op): index for index, op in enumerate(program.ops)}
    bad = [race.witness.id for race in explore(program).races if race.witness is not None]
    runs = [play(program), *(play(program, sim().Replay(id)) for id in bad)]
    finds = dict.fromkeys(_value(seen) for run in runs for seen in run.reads if seen.op == at[SECOND])
    ordered = explain(program, at[ADDED], at[SECOND]).ordered
    return Finding(gate, check(program).verdict, ordered, tuple(finds))


def table() -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Heads and rows for the chapter."""
    return HEADS, [_row(finding(gate)) for gate in Gate]


def _row(found: Finding) -> tuple[str, ...]:
    finds = " or ".join(words.removeprefix("the labels ") for words in found.finds)
    return str(found.gate), str(found.verdict), "always" if found.ordered else "by luck", finds


def _value(seen: Seen) -> str:
    """What was read, in the words of the op that wrote it."""
    (part,) = seen.contents.parts()
    told = re.search(r"\(([^)]*)\)$", part.words)
    return part.words if told is None else told[1]
