"""The shortest order in which a racing pair runs the wrong way round: the one with the fewest changes of lane."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from refimpl.order.explore_moves import Moves, bits
from refimpl.program import schedule_id

WIDEST = 20_000
"""States after which the search for the shortest order takes a good one instead."""


@dataclass(frozen=True)
class Witness:
    """An order that shows a race: it ends where the access that should come second has come first.

    Args:
        id: the order as a schedule, which the simulated device replays; what it does not name runs in the order of
            issue.
        steps: the same in words, step by step: the lane and what it does.
        switches: how often the lane changes.
        early, late: indices of the op that runs too early, and of the one that it overtakes.
        shortest: no order that shows this race changes the lane less often.
    """

    id: str
    steps: tuple[str, ...]
    switches: int
    early: int
    late: int
    shortest: bool = True


def in_issue_order(moves: Moves) -> list[int]:
    """The order in which each move is made as soon as it may: lanes first, then the host's next call."""
    calls = sum(1 << call for call in moves.call_at)
    state, possible, order = 0, moves.first(), []
    while possible:
        move = next(bits(possible & ~calls or possible))
        state |= 1 << move
        possible = possible & ~(1 << move) | moves.freed(move, state)
        order.append(move)
    return order


def witness(moves: Moves, early: int, late: int) -> Witness:
    """The order with the fewest changes of lane in which ``early`` is made and ``late`` is not, and nothing that
    ``early`` can do without."""
    useful, certain = _useful(moves, early, late)
    order = _fewest_runs(moves, early, useful, certain)
    shortest = order is not None
    if order is None:
        order = [move for move in in_issue_order(moves) if useful >> move & 1]
        order = order[: order.index(early) + 1]
    order = _trimmed(moves, order)
    lanes = [moves.all[move].lane for move in order]
    return Witness(
        id=schedule_id(map(moves.turn, order)),
        steps=tuple(map(moves.at, order)),
        switches=sum(a != b for a, b in pairwise(lanes)),
        early=moves.all[early].op,
        late=moves.all[late].op,
        shortest=shortest,
    )


def _useful(moves: Moves, early: int, late: int) -> tuple[int, bool]:
    """The moves that may serve to reach ``early`` without ``late``, and whether all of them must be made."""
    without = _reached(moves, late)
    useful, todo, certain = 1 << early, [early], True
    while todo:
        move = todo.pop()
        more = moves.needs[move] | (moves.release.get(move, 0) & without)
        certain = certain and move not in moves.release
        todo += bits(more & ~useful)
        useful |= more
    return useful, certain


def _reached(moves: Moves, held: int) -> int:
    """All that can be made when one move never is."""
    state, possible = 0, moves.first() & ~(1 << held)
    while possible:
        move = next(bits(possible))
        state |= 1 << move
        possible = (possible & ~(1 << move) | moves.freed(move, state)) & ~(1 << held)
    return state


def _fewest_runs(moves: Moves, early: int, useful: int, certain: bool) -> list[int] | None:
    """An order of useful moves in the fewest runs of one lane each, by breadth-first search; None if it grows too wide.

    A lane that may go on does: what it does then it need not do later. Where all moves must be made, a lane that can
    come to the end of its part is taken at once, since it has to be taken some time.
    """
    lanes: dict[int | None, list[int]] = {}
    for move in bits(useful):
        lanes.setdefault(moves.all[move].lane, []).append(move)
    came: dict[int, tuple[int, list[int]] | None] = {0: None}
    layer = [0]
    while layer and len(came) < WIDEST:
        after: list[int] = []
        for state in layer:
            for run, ends in _forced(_runs(moves, state, early, lanes.values()), certain):
                reached = state | sum(1 << move for move in run)
                if reached in came:
                    continue
                came[reached] = state, run
                if ends:
                    return _way(came, reached)
                after.append(reached)
        layer = after
    return None


def _runs(moves: Moves, state: int, early: int, lanes: Iterable[list[int]]) -> list[tuple[list[int], bool, bool]]:
    """For each lane that can move: its moves up to where it must stop, whether ``early`` is the last of them, and
    whether they are all that it has."""
    found = []
    for lane in lanes:
        now = state
        run: list[int] = []
        for move in lane:
            if now >> move & 1:
                continue
            if not moves.possible(move, now) or (run and run[-1] == early):
                break
            now |= 1 << move
            run.append(move)
        if run:
            found.append((run, run[-1] == early, run[-1] == lane[-1]))
    return found


def _forced(runs: list[tuple[list[int], bool, bool]], certain: bool) -> list[tuple[list[int], bool]]:
    """The runs to try: one that reaches the goal, else one that is due whatever else happens, else all."""
    for run, ends, _ in runs:
        if ends:
            return [(run, True)]
    if certain:
        for run, _, whole in runs:
            if whole:
                return [(run, False)]
    return [(run, False) for run, _, _ in runs]


def _way(came: dict[int, tuple[int, list[int]] | None], state: int) -> list[int]:
    order: list[int] = []
    step = came[state]
    while step is not None:
        before, run = step
        order[:0] = run
        step = came[before]
    return order


def _trimmed(moves: Moves, order: list[int]) -> list[int]:
    """The order without the moves that its last one does not need."""
    needed = 1 << order[-1]
    place = {move: k for k, move in enumerate(order)}
    kept: list[int] = []
    for move in reversed(order):
        if not needed >> move & 1:
            continue
        kept.append(move)
        needed |= moves.needs[move]
        if move in moves.release:
            writers = [w for w in bits(moves.release[move]) if place.get(w, len(order)) < place[move]]
            if not any(needed >> w & 1 for w in writers):
                needed |= 1 << min(writers, key=place.__getitem__)
    return kept[::-1]
