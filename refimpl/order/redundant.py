"""Which fences a program needs: leave one out and look for a race, with the clocks and with the explorer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from refimpl.order.check import check
from refimpl.order.explain import explain
from refimpl.order.explore import Bounds, explore
from refimpl.order.explore_moves import Moves, bits, moves_of
from refimpl.order.explore_report import Exploration, Overtaking, race_json
from refimpl.order.graph import EdgeKind
from refimpl.order.lowering import lower
from refimpl.order.mutate import Fence, drop, fences_of
from refimpl.program import Program, UserError, Verdict

PAIRS = 6
"""Pairs of accesses across a fence for which it is looked up what orders them."""

EXPLAINED_OPS = 2_000
"""Length of a program up to which it is said what else orders a pair; each answer walks over the program."""


@dataclass(frozen=True)
class FenceVerdict:
    """What becomes of a program without one fence.

    Args:
        fence: the fence.
        needed: leaving it out lets a race or a deadlock in.
        clocks, orders: the verdicts of ``check`` and of ``explore`` without it; ``orders`` is None where a bound was
            hit, and then ``needed`` rests on the clocks.
        race: the race that its absence lets in, with the shortest order that shows it in ``drop(program, fence)``.
        why: what it holds apart, or what still orders the accesses around it.
    """

    fence: Fence
    needed: bool
    clocks: Verdict
    orders: Verdict | None
    race: Overtaking | None
    why: str

    @property
    def op(self) -> int:
        """Index of the fence's op."""
        return self.fence.op


@dataclass(frozen=True)
class FenceReport:
    """All fences of a program, judged one by one, and together.

    Args:
        id: the program's.
        verdicts: one for each fence, in the order of issue.
        removable: redundant fences that can all be left out at once: none of the others can be left out as well.
    """

    id: str
    verdicts: tuple[FenceVerdict, ...]
    removable: tuple[Fence, ...]

    @property
    def needed(self) -> tuple[FenceVerdict, ...]:
        """Fences without which there is a race or a deadlock."""
        return tuple(verdict for verdict in self.verdicts if verdict.needed)

    @property
    def redundant(self) -> tuple[FenceVerdict, ...]:
        """Fences that can be left out one at a time."""
        return tuple(verdict for verdict in self.verdicts if not verdict.needed)

    def to_json(self) -> dict[str, Any]:
        """JSON values: ``id``, ``needed`` and ``redundant`` counts, ``fences``, ``removable``."""
        return {
            "id": self.id,
            "needed": len(self.needed),
            "redundant": len(self.redundant),
            "fences": [_verdict_json(verdict) for verdict in self.verdicts],
            "removable": [vars(fence) for fence in self.removable],
        }


def judge_fences(
    program: Program, *, bounds: Bounds | None = None, tell: Callable[[int, int], None] | None = None
) -> FenceReport:
    """Every fence of a program without races: needed, with the race that its absence lets in, or redundant.

    Two fences may each be redundant because the other is there. So the redundant ones are also left out one after the
    other, as long as nothing races: ``removable`` is what could go.

    Args:
        bounds: how far the explorer goes for each fence.
        tell: is told how many fences of how many were judged.

    Raises:
        UserError: the program has a race or a deadlock of its own.

    Example:
        >>> from refimpl.program import Buffer, EventSync, EventRecord, Launch, Range, Stream
        >>> lens = Range("lens", 0, 64)
        >>> report = judge_fences(Program(
        ...     streams={"forward": Stream()}, buffers={"lens": Buffer(64)},
        ...     ops=(
        ...         Launch(stream="forward", writes=(lens,)), EventRecord(event="done", stream="forward"),
        ...         EventSync(event="done"), Launch(stream="forward", reads=(lens,)),
        ...     ),
        ... ))
        >>> [verdict.needed for verdict in report.verdicts], len(report.removable)
        ([False, False], 2)
    """
    if check(program).verdict is not Verdict.OK:
        raise UserError(
            f"case {program.id!r} has a race or a deadlock of its own: fences are judged in a program without"
        )
    fences, verdicts = fences_of(program), []
    moves = moves_of(lower(program)) if len(program.ops) <= EXPLAINED_OPS else None
    for fence in fences:
        verdicts.append(_judge(program, moves, fence, bounds))
        if tell is not None:
            tell(len(verdicts), len(fences))
    return FenceReport(program.id, tuple(verdicts), _together(program, verdicts, bounds))


def _judge(program: Program, moves: Moves | None, fence: Fence, bounds: Bounds | None) -> FenceVerdict:
    without = drop(program, fence)
    clocks, found = check(without).verdict, explore(without, bounds=bounds, count=False)
    worst = clocks if found.verdict is None else found.verdict
    if worst is Verdict.OK:
        why = _what_else_orders(program, moves, without, fence)
        return FenceVerdict(fence, False, clocks, found.verdict, None, why)
    race = found.races[0] if found.races and worst is Verdict.RACE else None
    return FenceVerdict(fence, True, clocks, found.verdict, race, _what_it_holds_apart(found, race))


def _what_it_holds_apart(found: Exploration, race: Overtaking | None) -> str:
    if found.deadlock is not None:
        return f"without it everything stands still: {found.deadlock.words}"
    if race is None:
        return f"the clocks find a race without it ({found.bound})"
    return str(race)


def _what_else_orders(program: Program, moves: Moves | None, without: Program, fence: Fence) -> str:
    """In words, by the nearest pair of accesses whose order led through the fence."""
    if moves is None:
        return f"no race appears without it; the program is too long ({len(program.ops)} ops) to say what else orders"
    pairs = list(_pairs_across(moves, fence.op))
    if not pairs:
        return "no accesses to the same bytes near it are ordered by it"

    def leads_through(pair: tuple[int, int]) -> bool:
        return any(fence.op in (link.before.op, link.after.op) for link in explain(program, *pair).path)

    a, b = next(filter(leads_through, pairs), pairs[0])
    rest = explain(without, a, b)
    beyond = [link.words for link in rest.path if link.kind not in (EdgeKind.FIFO, EdgeKind.HOST)]
    return f"op {a} still comes before op {b}: {'; '.join(beyond) or 'they share a lane'}"


def _pairs_across(moves: Moves, op: int) -> Iterator[tuple[int, int]]:
    """The nearest pairs of ops before and after an op that use the same bytes, one writing."""
    pairs = {
        (moves.all[a].op, moves.all[b].op)
        for a in range(len(moves.all))
        if moves.all[a].op <= op
        for b in bits(moves.conflicts[a])
        if moves.all[b].op >= op and moves.all[a].op < moves.all[b].op
    }
    yield from sorted(pairs, key=lambda pair: (pair[1] - pair[0], pair))[:PAIRS]


def _together(program: Program, verdicts: list[FenceVerdict], bounds: Bounds | None) -> tuple[Fence, ...]:
    gone: list[Fence] = []
    for verdict in verdicts:
        if not verdict.needed:
            without = drop(program, *gone, verdict.fence)
            if check(without).verdict is Verdict.OK and _none_found(explore(without, bounds=bounds, count=False)):
                gone.append(verdict.fence)
    return tuple(gone)


def _none_found(found: Exploration) -> bool:
    return found.verdict in (Verdict.OK, None)


def _verdict_json(verdict: FenceVerdict) -> dict[str, Any]:
    return {
        **vars(verdict.fence),
        "needed": verdict.needed,
        "why": verdict.why,
        "clocks": str(verdict.clocks),
        "orders": "unknown" if verdict.orders is None else str(verdict.orders),
        "race": None if verdict.race is None else race_json(verdict.race),
    }
