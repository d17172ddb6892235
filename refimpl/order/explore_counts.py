"""How many orders a program has: counted exactly, state by state, without walking through any of them.

Two orders are one *trace* if they differ only in the places of moves that do not meet: each byte then sees the same
accesses in the same order, and every value is the same. A program without races has one trace.
"""

from refimpl.order.explore_moves import Moves, bits
from refimpl.order.explore_search import Limits


def count_orders(moves: Moves, limits: Limits) -> tuple[int, int] | None:
    """All states, and all orders of the moves from the beginning to where nothing can move; None past a limit."""
    layer: dict[int, tuple[int, int]] = {0: (moves.first(), 1)}
    states = orders = 0
    while layer:
        after: dict[int, tuple[int, int]] = {}
        for state, (possible, ways) in layer.items():
            if limits.hit(states) is not None:
                return None
            states += 1
            if not possible:
                orders += ways
            for move in bits(possible):
                next_ = state | 1 << move
                known = after.get(next_)
                if known is None:
                    after[next_] = possible & ~(1 << move) | moves.freed(move, next_), ways
                else:
                    after[next_] = known[0], known[1] + ways
        layer = after
    return states, orders


def count_traces(moves: Moves, limits: Limits) -> int | None:
    """All traces; None past a limit.

    A search with sleep sets ends in each trace once: a branch in which some move stays asleep for good repeats another.
    Branches that agree in state and in what sleeps go on alike, and are counted together.
    """
    layer: dict[tuple[int, int], tuple[int, int]] = {(0, 0): (moves.first(), 1)}
    seen = traces = 0
    while layer:
        after: dict[tuple[int, int], tuple[int, int]] = {}
        for (state, sleep), (possible, ways) in layer.items():
            if limits.hit(seen) is not None:
                return None
            seen += 1
            if not possible:
                traces += ways
            for move in bits(_to_follow(moves, state, possible)):
                if sleep >> move & 1:
                    continue
                next_ = state | 1 << move
                key = next_, sleep & ~moves.conflicts[move]
                rest, known = after.get(key, (0, 0))
                after[key] = rest or (possible & ~(1 << move) | moves.freed(move, next_)), known + ways
                sleep |= 1 << move
        layer = after
    return traces


def _to_follow(moves: Moves, state: int, possible: int) -> int:
    """All that may be made; one move alone where it meets nothing that is still to come."""
    for move in bits(possible):
        if not moves.conflicts[move] & ~state:
            return 1 << move
    return possible
