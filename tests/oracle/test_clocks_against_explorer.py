"""Two engines of different method agree: happens-before by clocks and edges, and a search through the orders
themselves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.order import build, check, explore, lower, races_in
from refimpl.order.explore_counts import count_orders
from refimpl.order.explore_moves import moves_of
from refimpl.order.explore_search import Limits, search, search_every_state
from refimpl.order.lowering import _Lowering
from refimpl.program import Program, Verdict, read_programs
from tests.litmus import words
from tests.oracle.orders import all_states
from tests.property.programs import KINDS, WITH_FLAGS, assert_never, random_program, thinned

TESTS = Path(__file__).parents[1]
FILES = (TESTS / "cases" / "stream-programs.json", TESTS / "litmus" / "programs.json")
CASES = [pytest.param(program, id=program.id) for file in FILES for program in read_programs(file)]
FLAG_KINDS = (*WITH_FLAGS, "stream_write_value", "event_record", "stream_wait_event", "stream_sync", "graph_launch")
FLAG_STREAMS = ("s", "t", "b", "c", "s1", "legacy")
SMALL = 4_000
"""States up to which every one is visited."""


def edges(program: Program) -> set[tuple[int, int]]:
    return {(race.first.op, race.second.op) for race in races_in(build(program))}


def disagree(program: Program) -> bool:
    """``check`` may leave out a pair whose later one it reports; reachability reports all."""
    found, report = explore(program, count=False), check(program)
    if found.verdict is not report.verdict:
        return True
    if report.deadlock is not None:
        return found.deadlock is None or found.deadlock.ops != report.deadlock.ops or not found.pairs <= edges(program)
    return found.pairs != edges(program) or not {(r.first.op, r.second.op) for r in report.races} <= found.pairs


@pytest.mark.parametrize("program", CASES)
def test_verdict_and_racing_pairs_are_those_of_the_clocks(program: Program) -> None:
    assert not disagree(program), program.words
    found = explore(program, count=False)
    assert not program.racing_ops or found.verdict is Verdict.DEADLOCK or found.pairs & set(program.racing_ops)


def test_they_agree_on_random_programs_over_all_ops() -> None:
    assert_never(disagree, [random_program(seed) for seed in range(20_000, 20_600)])


def test_they_agree_on_the_order_of_any_two_ops() -> None:
    assert_never(disagree, [thinned(random_program(seed), seed) for seed in range(30_000, 30_700)])


def test_they_agree_on_programs_that_may_deadlock() -> None:
    programs = [random_program(seed, FLAG_KINDS, 12, FLAG_STREAMS) for seed in range(500)]
    assert 30 < sum(check(program).verdict is Verdict.DEADLOCK for program in programs[:200]) < 150
    assert_never(disagree, programs)


def test_they_agree_that_setting_a_flag_is_an_action_of_the_legacy_stream() -> None:
    assert not disagree(words.program(words.write("b"), words.set_flag("legacy"), words.read("c")))


@pytest.mark.parametrize("kind", KINDS)
def test_they_agree_where_one_kind_of_op_is_frequent(kind: str) -> None:
    kinds = (kind, kind, "event_record", "stream_wait_event", "set_device")
    assert_never(disagree, [thinned(random_program(seed, kinds, length=10), seed) for seed in range(40)])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(4, 20))
def test_they_agree_on_programs_of_any_length(seed: int, length: int) -> None:
    assert not disagree(random_program(seed, length=length))


def late_binding(self: Any, queue: Any) -> tuple[int, ...]:
    """A planted misreading: the legacy stream is an ordinary one."""
    return tuple(queue.last)


def no_blocking(self: Any, call: Any, op: Any) -> Any:
    """A planted misreading: no synchronize holds the host."""
    return call


def unordered_graph(self: Any, queue: Any, last: tuple[int, ...]) -> None:
    """A planted misreading: a stream goes on after the first node of a graph."""
    queue.last, queue.barrier = last[:1], ()


@pytest.mark.parametrize(
    ("name", "wrong"), [("_held", late_binding), ("_on_host", no_blocking), ("_ends", unordered_graph)]
)
def test_a_misread_rule_shows_as_a_disagreement(
    name: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Lowering, name, wrong)
    assert any(disagree(random_program(seed)) for seed in range(20_000, 20_200))


def searches_differ(program: Program) -> bool:
    """Two moves a state, every state with sleep sets, and every state one step at a time."""
    units = lower(program)
    moves, limits = moves_of(units), Limits(SMALL, 60.0)
    every, few = search_every_state(moves, limits), search(moves, limits)
    if every.bound is not None:
        return False
    counted = count_orders(moves, Limits(10 * SMALL, 60.0))
    plain = len(all_states(units)) if every.states < 300 else every.states
    return (
        (every.pairs, every.ends) != (few.pairs, few.ends) or counted is None or not counted[0] == every.states == plain
    )


def test_two_moves_a_state_find_what_every_state_shows() -> None:
    assert_never(searches_differ, [random_program(seed) for seed in range(40_000, 40_250)])
    assert_never(searches_differ, [random_program(seed, FLAG_KINDS, 12, FLAG_STREAMS) for seed in range(250)])


def test_most_random_programs_are_small_enough_to_visit_every_state() -> None:
    limits = [Limits(SMALL, 60.0)] * 250
    visited = [
        search_every_state(moves_of(lower(random_program(seed))), limit).bound is None
        for seed, limit in zip(range(40_000, 40_250), limits, strict=True)
    ]
    assert sum(visited) > 200
