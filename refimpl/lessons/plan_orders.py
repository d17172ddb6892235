"""What a fence puts in order: every two pieces of work of a program of which one comes before the other in all orders.

Two fences that put the same pairs in order are one fence, however they are spelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from refimpl.order import EdgeKind, build, explain
from refimpl.order.flags import ancestors
from refimpl.program import HostRead, HostWork, Launch, Op, Program, UserError, label

Pair = tuple[str, str]
"""Two pieces of work by their names: the first comes before the second in every order."""


def ordered(program: Program) -> frozenset[Pair]:
    """All pairs of named work that the program's lanes and fences put in order; fences themselves do not count.

    Args:
        program: whose kernels, and whose work and reads of the host, have a name; one that stands there again is
            counted, as in ``"cast (2)"``.
    """
    names = _names(program.ops)
    graph = build(program)
    before = ancestors(graph)
    steps = {step.op: step.index for step in graph.steps if step.op in names}
    return frozenset(
        (names[first], names[second])
        for second, at in steps.items()
        for first, other in steps.items()
        if first != second and before[at] >> other & 1
    )


def freed(tight: Program, loose: Program) -> list[Pair]:
    """Pairs of different lanes that one program puts in order and another leaves free, of work that both have."""
    lanes = {**_lanes(tight), **_lanes(loose)}
    both = _lanes(tight).keys() & _lanes(loose)
    apart = (pair for pair in ordered(tight) - ordered(loose) if set(pair) <= both)
    # A pair within what was one lane is no news of a fence.
    return sorted(pair for pair in apart if lanes[pair[0]] != lanes[pair[1]])


def path(program: Program, first: str, second: str) -> str:
    """The edges from one piece of work to another, a line each; those within a lane are left out.

    It says nothing of races elsewhere, as a proof would.

    Raises:
        UserError: no such work, or nothing puts the two in order.
    """
    at = {name: index for index, name in _names(program.ops).items()}
    for name in (first, second):
        if name not in at:
            raise UserError(f"{program.id} has no work {name!r}")
    found = explain(program, at[first], at[second])
    if not found.ordered or found.second != at[second]:
        raise UserError(f"{program.id}: nothing puts {second!r} behind {first!r}")
    edges = [link.words for link in found.path if link.kind not in (EdgeKind.FIFO, EdgeKind.HOST)]
    return "\n".join(
        [f"{second} comes behind {first}:", *(f"  {number}. {edge}" for number, edge in enumerate(edges, 1))]
    )


def _names(ops: Sequence[Op]) -> dict[int, str]:
    seen = Counter[str]()
    names = dict[int, str]()
    for index, op in enumerate(ops):
        if isinstance(op, Launch | HostWork | HostRead):
            name = label(op)
            seen[name] += 1
            names[index] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return names


def _lanes(program: Program) -> dict[str, str]:
    names = _names(program.ops)
    return {name: str(getattr(program.ops[index], "stream", "host")) for index, name in names.items()}
