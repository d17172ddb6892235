"""The search through the states of a program, each visited once.

``every_state`` visits all of them. *State caching* leaves out what was visited before, and *sleep sets* the moves that
would lead there by another order of moves that do not meet: they save moves, not states.

The other search is quick enough for long programs, since it follows at most two moves out of a state. That finds every
pair that can meet: as long as a pair waits to meet, any third move leaves it able to, because no move takes another's
turn away; and of two moves that may be made, one is a third or the two are the pair, met. One move is enough where it
is alone, or shares no byte with any move that is still to come.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from refimpl.order.explore_moves import Moves, bits

TELL_EVERY = 4096


@dataclass
class Found:
    """What a search came upon.

    Args:
        pairs: moves that can be under way at the same time and share a byte that one of them writes.
        states, transitions: how many it visited and followed.
        revisits: transitions that led to a state visited before.
        asleep: transitions that sleep sets left out.
        ends: the states in which nothing can move.
        bound: which bound ended it early, in words.
    """

    pairs: set[tuple[int, int]] = field(default_factory=set)
    states: int = 0
    transitions: int = 0
    revisits: int = 0
    asleep: int = 0
    ends: set[int] = field(default_factory=set)
    bound: str | None = None


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Args:
        states: most states.
        seconds: most time, from here on.
        tell: is told now and then how many states there were.
    """

    states: int
    seconds: float
    tell: Callable[[int], None] | None = None
    _begin: float = field(default_factory=monotonic)

    @property
    def late(self) -> bool:
        """The time is up."""
        return monotonic() - self._begin >= self.seconds

    def hit(self, states: int) -> str | None:
        """Which bound is hit after this many states, in words."""
        if states >= self.states:
            return f"states={self.states}"
        if states % 64 == 0 and self.late:
            return f"seconds={self.seconds:g}"
        if self.tell is not None and states % TELL_EVERY == 0:
            self.tell(states)
        return None


def search(moves: Moves, limits: Limits) -> Found:
    """Every pair that can meet and every end, by two moves a state."""
    found = Found(states=1)
    first = moves.first()
    seen, stack = {0}, [(0, first)]
    _meet(moves, first, first, found)
    while stack:
        state, possible = stack.pop()
        if not possible:
            found.ends.add(state)
        for move in reversed(_enough(moves, state, possible)):  # so that the first is followed first
            found.transitions += 1
            after = state | 1 << move
            if after in seen:
                found.revisits += 1
                continue
            found.bound = limits.hit(found.states)
            if found.bound is not None:
                return found
            seen.add(after)
            found.states += 1
            freed = moves.freed(move, after)
            rest = possible & ~(1 << move) | freed
            _meet(moves, freed, rest, found)
            stack.append((after, rest))
    return found


def _enough(moves: Moves, state: int, possible: int) -> list[int]:
    """The moves to follow: one that meets nothing that is to come, else the two first in the order of issue."""
    two: list[int] = []
    for move in bits(possible):
        if not moves.conflicts[move] & ~state:
            return [move]
        if len(two) < 2:
            two.append(move)
    return two


def search_every_state(moves: Moves, limits: Limits) -> Found:
    """As ``search``, through every state that there is."""
    found = Found()
    asleep_at: dict[int, int] = {}
    first = moves.first()
    stack = [(0, first, first, 0)]
    while stack:
        state, possible, freed, sleep = stack.pop()
        known = asleep_at.get(state)
        if known is None:
            found.bound = limits.hit(found.states)
            if found.bound is not None:
                return found
            found.states += 1
            _meet(moves, freed, possible, found)
            if not possible:
                found.ends.add(state)
            follow = possible & ~sleep
            found.asleep += (possible & sleep).bit_count()
        else:
            follow = known & ~sleep
            found.asleep -= follow.bit_count()
            sleep &= known
            found.revisits += 1
        asleep_at[state] = sleep
        for move in bits(follow):
            found.transitions += 1
            after = state | 1 << move
            freed = moves.freed(move, after)
            stack.append((after, possible & ~(1 << move) | freed, freed, sleep & ~moves.conflicts[move]))
            sleep |= 1 << move
    return found


def _meet(moves: Moves, freed: int, possible: int, found: Found) -> None:
    """Notes the pairs that a state brings together: it is enough to look at the moves that became possible in it."""
    for move in bits(freed):
        for other in bits(moves.conflicts[move] & possible):
            found.pairs.add((min(move, other), max(move, other)))
