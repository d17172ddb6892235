"""Orders of a program by the plainest means: one step at a time, from what ``Units`` says, with no sets of bits."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from refimpl.order import Bytes, Units
from refimpl.program import HOST, overlap, turns_of

Step = tuple[str, int]
"""``("call", op)`` or ``("unit", index)``."""


@dataclass
class Run:
    """A device in the middle of one order: how many calls were made, and which units have run."""

    units: Units
    calls: int = 0
    done: frozenset[int] = frozenset()
    order: list[Step] = field(default_factory=list)

    def lanes(self) -> dict[int | None, Step]:
        """The next step of each lane that may move."""
        found: dict[int | None, Step] = {}
        if self.calls < len(self.units.calls):
            call = self.units.calls[self.calls]
            held = (*call.first, *(self.units.calls[self.calls - 1].until if self.calls else ()))
            if set(held) <= self.done:
                found[HOST] = ("call", self.calls)
        heads: dict[int, int] = {}
        for unit in self.units.units:
            if unit.index not in self.done and unit.op < self.calls:
                heads.setdefault(unit.lane, unit.index)
        for lane, index in heads.items():
            unit = self.units.units[index]
            set_ = unit.flag is None or any(w in self.done for w in self.units.writers.get(unit.flag, ()))
            if set(unit.after) <= self.done and set_:
                found[lane] = ("unit", index)
        return found

    def after(self, lane: int | None) -> "Run":
        """The run one step of this lane later."""
        kind, index = self.lanes()[lane]
        calls, done = (self.calls + 1, self.done) if kind == "call" else (self.calls, self.done | {index})
        return Run(self.units, calls, done, [*self.order, (kind, index)])

    @property
    def state(self) -> tuple[int, frozenset[int]]:
        return self.calls, self.done


def replayed(units: Units, schedule: str) -> Run:
    """The run after the steps of a schedule; a step that is not possible is an error."""
    run = Run(units)
    for number, turn in enumerate(turns_of(schedule), 1):
        assert turn.lane in run.lanes(), f"step {number}: lane {turn.lane} cannot move"
        run = run.after(turn.lane)
    return run


def all_orders(units: Units) -> Iterator[list[Step]]:
    """Every order up to where nothing can move."""
    todo = [Run(units)]
    while todo:
        run = todo.pop()
        lanes = run.lanes()
        if not lanes:
            yield run.order
        todo += [run.after(lane) for lane in lanes]


def all_states(units: Units) -> set[tuple[int, frozenset[int]]]:
    """Every state that some order passes."""
    first = Run(units)
    seen, todo = {first.state}, [first]
    while todo:
        run = todo.pop()
        for lane in run.lanes():
            later = run.after(lane)
            if later.state not in seen:
                seen.add(later.state)
                todo.append(later)
    return seen


def fewest_switches(units: Units, early: int, late: int) -> int | None:
    """The least number of changes of lane with which some step of op ``early`` comes before one of ``late`` that
    touches memory, by 0-1 search over state and lane; None if there is no such order."""
    first = Run(units)
    best: dict[object, int] = {}
    todo: deque[tuple[int, int | str | None, Run]] = deque([(0, "", first)])
    while todo:
        cost, last, run = todo.popleft()
        if best.setdefault((run.state, last), cost) < cost:
            continue
        if run.order and _touching(units, run.order[-1], early) and _waits(run, late, run.order[-1]):
            return cost
        for lane in run.lanes():
            more = 0 if last in ("", lane) else 1
            later = run.after(lane)
            if best.get((later.state, lane), 1 << 30) > cost + more:
                best[later.state, lane] = cost + more
                (todo.append if more else todo.appendleft)((cost + more, lane, later))
    return None


def meets(units: Units, a: Step, b: Step) -> bool:
    """The two steps share a byte that one of them writes."""
    (reads, writes), (their_reads, their_writes) = _bytes(units, a), _bytes(units, b)
    return any(
        memory == other and overlap(r, q._replace(buf=r.buf)) is not None
        for ours, theirs in ((writes, their_reads), (writes, their_writes), (reads, their_writes))
        for memory, r in ours
        for other, q in theirs
    )


def _bytes(units: Units, step: Step) -> tuple[tuple[Bytes, ...], tuple[Bytes, ...]]:
    kind, index = step
    made = units.calls[index] if kind == "call" else units.units[index]
    return made.reads, made.writes


def _op(units: Units, step: Step) -> int:
    return step[1] if step[0] == "call" else units.units[step[1]].op


def _touching(units: Units, step: Step, op: int) -> bool:
    return _op(units, step) == op and any(_bytes(units, step))


def _waits(run: Run, op: int, met: Step) -> bool:
    """Some step of the op that meets this one was not made."""
    steps: list[Step] = [("call", op), *(("unit", index) for index in run.units.calls[op].units)]
    return any(step not in run.order and step != met and meets(run.units, step, met) for step in steps)
