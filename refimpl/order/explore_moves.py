"""The moves of a program: what may happen next, and what each must wait for. A state is the set of moves made.

A move is one call of the host or one unit of a lane, as a bit of an integer in the order of issue. No move ever takes
another's turn away: what may be made stays possible until it is made. So a state needs no more than which moves were
made, and a unit that may begin counts as one that is running: to begin changes nothing for the others, to end does.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from refimpl.order.shadow import shared
from refimpl.order.units import Bytes, Unit, Units
from refimpl.program import HOST, Range, Turn


@dataclass(frozen=True)
class Move:
    """One thing that happens at a lane's turn.

    Args:
        op: index of the op.
        lane: number of its lane, or ``HOST``.
        name: what it is.
        reads, writes: the bytes that it uses.
    """

    op: int
    lane: int | None
    name: str
    reads: tuple[Bytes, ...] = ()
    writes: tuple[Bytes, ...] = ()


@dataclass
class Moves:
    """All moves of a program in the order of issue; sets of moves are the bits of an integer.

    Args:
        units: where they come from.
        all: the moves.
        needs: for each, the moves that must have been made before.
        release: for each that waits for a flag, the moves that set it: one of them must have been made.
        frees: for each, the moves that may become possible by it.
        conflicts: for each, the moves that use a byte of its own where one of the two writes.
        unit_at, call_at: the move of each unit and of each call.
    """

    units: Units
    all: list[Move] = field(default_factory=list)
    needs: list[int] = field(default_factory=list)
    release: dict[int, int] = field(default_factory=dict)
    frees: list[list[int]] = field(default_factory=list)
    conflicts: list[int] = field(default_factory=list)
    unit_at: list[int] = field(default_factory=list)
    call_at: list[int] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The state in which every move was made."""
        return (1 << len(self.all)) - 1

    def possible(self, move: int, state: int) -> bool:
        """The move may be made in this state, in which it was not made."""
        if self.needs[move] & ~state:
            return False
        release = self.release.get(move)
        return release is None or bool(release & state)

    def first(self) -> int:
        """The moves that may be made when none was."""
        return sum(1 << move for move in range(len(self.all)) if self.possible(move, 0))

    def freed(self, move: int, state: int) -> int:
        """The moves that become possible when ``move`` brings about ``state``."""
        found = 0
        for follower in self.frees[move]:
            if not state >> follower & 1 and self.possible(follower, state):
                found |= 1 << follower
        return found

    def turn(self, move: int) -> Turn:
        """The move as a step of a schedule."""
        return Turn(self.all[move].lane)

    def at(self, move: int) -> str:
        """The move in words, such as ``"host: op 3 synchronize(copy_done)"``."""
        made = self.all[move]
        lane = "host" if made.lane is HOST else self.units.lanes[made.lane]
        return f"{lane}: op {made.op} {made.name}"


def bits(mask: int) -> Iterator[int]:
    """The members of a set, smallest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def moves_of(units: Units) -> Moves:
    """The moves of a lowered program."""
    moves = Moves(units)
    last: dict[int, int] = {}
    for call in units.calls:
        before = [moves.unit_at[unit] for unit in call.first]
        if moves.call_at:
            before += [moves.call_at[-1], *(moves.unit_at[unit] for unit in units.calls[call.op - 1].until)]
        moves.call_at.append(_add(moves, Move(call.op, HOST, call.name, call.reads, call.writes), before))
        for index in call.units:
            unit = units.units[index]
            before = [moves.call_at[-1], *(moves.unit_at[other] for other in unit.after)]
            if unit.lane in last:
                before.append(last[unit.lane])
            last[unit.lane] = _add(moves, Move(unit.op, unit.lane, unit.name, unit.reads, unit.writes), before)
            moves.unit_at.append(last[unit.lane])
    for unit in units.units:
        if unit.flag is not None:
            _wait(moves, unit, unit.flag)
    moves.conflicts = _conflicts(moves.all)
    return moves


def _add(moves: Moves, move: Move, before: list[int]) -> int:
    index = len(moves.all)
    moves.all.append(move)
    moves.needs.append(sum(1 << other for other in set(before)))
    moves.frees.append([])
    for other in set(before):
        moves.frees[other].append(index)
    return index


def _wait(moves: Moves, unit: Unit, flag: str) -> None:
    writers = [moves.unit_at[other] for other in moves.units.writers.get(flag, ())]
    moves.release[moves.unit_at[unit.index]] = sum(1 << writer for writer in writers)
    for writer in writers:
        moves.frees[writer].append(moves.unit_at[unit.index])


def _conflicts(moves: list[Move]) -> list[int]:
    """Who meets whom, by distinct ranges: a program repeats its ranges far more often than it has new ones."""
    reading: dict[Bytes, int] = {}
    writing: dict[Bytes, int] = {}
    for index, move in enumerate(moves):
        for place in move.reads:
            reading[place] = reading.get(place, 0) | 1 << index
        for place in move.writes:
            writing[place] = writing.get(place, 0) | 1 << index
    with_reads: dict[Bytes, int] = {}
    with_writes: dict[Bytes, int] = {}
    for place, other in _meeting({**reading, **writing}):
        with_reads[place] = with_reads.get(place, 0) | writing.get(other, 0)
        with_writes[place] = with_writes.get(place, 0) | writing.get(other, 0) | reading.get(other, 0)
    found = []
    for index, move in enumerate(moves):
        met = 0
        for place in move.reads:
            met |= with_reads[place]
        for place in move.writes:
            met |= with_writes[place]
        found.append(met & ~(1 << index))
    return found


def _meeting(places: dict[Bytes, int]) -> Iterator[tuple[Bytes, Bytes]]:
    """All pairs of places that share a byte, in both orders, each with itself."""
    by_memory: dict[str, list[Range]] = {}
    for memory, r in places:
        by_memory.setdefault(memory, []).append(r)
    for memory, ranges in by_memory.items():
        open_: list[Range] = []
        for r in sorted(ranges, key=lambda r: r.off):
            open_ = [other for other in open_ if other.end > r.off]
            yield Bytes(memory, r), Bytes(memory, r)
            for other in open_:
                if shared(r, other) is not None:
                    yield Bytes(memory, r), Bytes(memory, other)
                    yield Bytes(memory, other), Bytes(memory, r)
            open_.append(r)
