"""``explore``: the verdict on a program from its orders themselves, with the shortest order that shows each race.

It knows no clocks and no happens-before graph: ``lower`` says what each lane does, and a search tries every order of
that. So it is the second opinion on ``check``, and the one that answers "show me".
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from refimpl.order.conflicts import conflicts
from refimpl.order.explore_counts import count_orders, count_traces
from refimpl.order.explore_moves import Moves, bits, moves_of
from refimpl.order.explore_report import Exploration, Overtaking
from refimpl.order.explore_search import Found, Limits, search, search_every_state
from refimpl.order.explore_witness import Witness, in_issue_order, witness
from refimpl.order.lowering import lower
from refimpl.order.report import Deadlock, Touch
from refimpl.program import HOST, Program, UserError, Verdict


@dataclass(frozen=True)
class Bounds:
    """How far a search may go.

    Args:
        states: states visited, and as many more for each of the two counts.
        seconds: time for the search; the counts and witnesses may take as long again.
        moves: calls and units of a program, for which sets of as many bits are kept.
    """

    states: int = 100_000
    seconds: float = 20.0
    moves: int = 10_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise UserError(f"bound {name}={value}: give a number above 0")


def explore(
    program: Program,
    *,
    bounds: Bounds | None = None,
    every_state: bool = False,
    count: bool = True,
    tell: Callable[[int], None] | None = None,
) -> Exploration:
    """All legal orders of a program, under the strict reading of the rules: races, deadlock and counts.

    Args:
        bounds: how far to go; past a bound the verdict is None unless it was certain before.
        every_state: visit every state that there is; else follow at most two moves from each, which finds the same
            races and the same end (``explore_search`` says why).
        count: also count states, orders and traces.
        tell: is told now and then how many states were visited.

    Example:
        >>> from refimpl.program import Buffer, Launch, Range, Stream
        >>> lens = Range("lens", 0, 64)
        >>> found = explore(Program(
        ...     streams={"forward": Stream(), "schedule": Stream()}, buffers={"lens": Buffer(64)},
        ...     ops=(Launch(stream="forward", writes=(lens,)), Launch(stream="schedule", reads=(lens,))),
        ... ))
        >>> found.verdict, found.orders, found.traces, found.races[0].witness.id
        (<Verdict.RACE: 'race'>, 3, 2, 'h2.2')
    """
    bounds = bounds or Bounds()
    size = len(program.ops)
    if size <= bounds.moves:
        units = lower(program)
        size = len(units.calls) + len(units.units)
    if size > bounds.moves:
        bound = f"the bound moves={bounds.moves} is below the program's {size} or more, so no order was tried"
        return Exploration(program.id, None, (), None, 0, 0, 0, 0, None, None, None, bound, program.disputed)
    moves = moves_of(units)
    found = (search_every_state if every_state else search)(moves, _limits(bounds, tell))
    races = tuple(_races(moves, found, _limits(bounds)))
    stuck = next((_deadlock(moves, state) for state in found.ends if state != moves.end), None)
    verdict = _verdict(found, stuck)
    counted = count_orders(moves, _limits(bounds)) if count and found.bound is None else None
    return Exploration(
        id=program.id,
        verdict=verdict,
        races=races,
        deadlock=stuck,
        states=found.states,
        transitions=found.transitions,
        revisits=found.revisits,
        asleep=found.asleep,
        all_states=counted and counted[0],
        orders=counted and counted[1],
        traces=count_traces(moves, _limits(bounds)) if count and found.bound is None else None,
        bound=found.bound and f"the bound {found.bound} was hit after {found.states} states",
        disputed=program.disputed,
    )


def _limits(bounds: Bounds, tell: Callable[[int], None] | None = None) -> Limits:
    return Limits(bounds.states, bounds.seconds, tell)


def _verdict(found: Found, stuck: Deadlock | None) -> Verdict | None:
    """A race is certain only when an end was seen too, since a deadlock would outweigh it."""
    if stuck is not None:
        return Verdict.DEADLOCK
    if found.pairs and found.ends:
        return Verdict.RACE
    return Verdict.OK if found.bound is None else None


def _races(moves: Moves, found: Found, limits: Limits) -> Iterator[Overtaking]:
    """One race for each pair of ops, with the shortest witness that any of its pairs of moves has."""
    by_ops: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for a, b in sorted(found.pairs):
        by_ops.setdefault((moves.all[a].op, moves.all[b].op), []).append((a, b))
    at = {move: k for k, move in enumerate(in_issue_order(moves))}
    for ops, pairs in sorted(by_ops.items(), key=lambda item: (item[0][1], item[0][0])):
        best: tuple[tuple[int, int], Witness] | None = None
        for a, b in pairs:
            if limits.late:
                break
            order = witness(moves, b, a) if at.get(a, len(at)) < at.get(b, len(at)) else witness(moves, a, b)
            if best is None or (order.switches, len(order.steps)) < (best[1].switches, len(best[1].steps)):
                best = (a, b), order
        a, b = best[0] if best else pairs[0]
        kind, bytes_ = next(conflicts(moves.all[a], moves.all[b]))
        yield Overtaking(ops, kind, bytes_, _touch(moves, a), _touch(moves, b), best and best[1])


def _touch(moves: Moves, move: int) -> Touch:
    made = moves.all[move]
    op = moves.units.program.ops[made.op]
    return Touch(made.op, made.name, _place(moves, move), op.site)


def _place(moves: Moves, move: int) -> str:
    """The lane as ``check`` calls it: a graph's nodes are said to run on the stream that it was launched on."""
    lane, op = moves.all[move].lane, moves.units.program.ops[moves.all[move].op]
    if lane is HOST:
        return "host"
    return moves.units.lanes[lane] if lane > 0 else str(getattr(op, "stream", ""))


def _deadlock(moves: Moves, state: int) -> Deadlock:
    """Who stands where in a state in which nothing can move: those who wait for a flag, and who waits for them."""
    calls = sum(1 << call for call in moves.call_at)
    heads: dict[int | None, int] = {}
    for move in bits(moves.end & ~state):
        heads.setdefault(moves.all[move].lane, move)
    causes: list[int] = []
    words: list[str] = []
    for lane, move in heads.items():
        missing = moves.needs[move] & ~state
        for_whom = ", ".join(map(moves.at, bits(missing)))
        if not missing:
            causes.append(moves.all[move].op)
            words.append(f"{moves.at(move)} stands still: {_flag(moves, move)}")
        elif lane is HOST:
            words.append(f"host: before op {moves.all[move].op} {moves.all[move].name} it waits for {for_whom}")
        elif not missing & calls:
            words.append(f"{moves.at(move)} waits for {for_whom}")
    return Deadlock(tuple(sorted(set(causes))), "; ".join(words))


def _flag(moves: Moves, move: int) -> str:
    writers = ", ".join(map(moves.at, bits(moves.release[move])))
    return f"its flag is set by {writers} alone, which cannot run" if writers else "nothing sets its flag"
