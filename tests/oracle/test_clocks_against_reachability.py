"""Two statements of the rules, clocks call by call and reachability over edges, agree; and flags agree with holding one
step back for ever."""

import pytest

from refimpl.order import Graph, Race, build, deadlock, races_in, run
from refimpl.order.flags import ancestors
from refimpl.program import Program
from tests.property.programs import KINDS, WITH_FLAGS, assert_never, random_program, thinned


def pairs(races: list[Race]) -> set[tuple[int, int]]:
    return {(race.first.op, race.second.op) for race in races}


def disagree(program: Program, as_observed: bool) -> bool:
    clocks = pairs(run(program, as_observed).races())
    edges = pairs(races_in(build(program, as_observed)))
    return bool(clocks) != bool(edges) or not clocks <= edges


@pytest.mark.parametrize("as_observed", [False, True])
def test_clocks_and_reachability_agree_on_programs_of_many_accesses(as_observed: bool) -> None:
    programs = [random_program(seed) for seed in range(700)]
    assert_never(lambda program: disagree(program, as_observed), programs)


@pytest.mark.parametrize("as_observed", [False, True])
def test_clocks_and_reachability_agree_on_the_order_of_any_two_ops(as_observed: bool) -> None:
    """With two accesses left, one order is in question, and no other race hides a wrong answer."""
    programs = [thinned(random_program(seed), seed) for seed in range(10_000, 11_500)]
    assert_never(lambda program: disagree(program, as_observed), programs)


@pytest.mark.parametrize("kind", KINDS)
def test_clocks_and_reachability_agree_where_one_kind_of_op_is_frequent(kind: str) -> None:
    kinds = (kind, kind, "event_record", "stream_wait_event", "set_device")
    programs = [thinned(random_program(seed, kinds, length=10), seed) for seed in range(100)]
    assert_never(lambda program: disagree(program, False) or disagree(program, True), programs)


def reached(graph: Graph, held: int | None) -> set[int]:
    """The steps that execute when one of them never does: swept until nothing changes."""
    done: set[int] = set()
    flags: set[str] = set()
    size = -1
    while size < len(done):
        size = len(done)
        for step in graph.steps:
            free = step.flag is None or step.flag in flags
            if step.index != held and free and all(edge.before in done for edge in graph.into[step.index]):
                done.add(step.index)
                if step.sets is not None:
                    flags.add(step.sets)
    return done


FLAG_KINDS = (*WITH_FLAGS, "stream_write_value", "event_record", "stream_wait_event", "stream_sync", "graph_launch")
FLAG_STREAMS = ("s", "t", "b", "c", "s1", "legacy")


def flags_are_wrong(program: Program) -> bool:
    graph = build(program)
    everything = reached(graph, None)
    if (deadlock(graph) is not None) != (len(everything) < len(graph.steps)):
        return True
    before = ancestors(graph)
    for first in everything:
        without = reached(graph, held=first)
        for second in everything - {first}:
            if (before[second] >> first & 1 == 1) != (second not in without):
                return True
    return False


def test_a_step_is_before_another_when_holding_it_back_holds_the_other_back() -> None:
    """A flag once set stays set, so what can run only gets more: this decides the order exactly."""
    assert_never(flags_are_wrong, [random_program(seed, FLAG_KINDS, 12, FLAG_STREAMS) for seed in range(700)])


def test_the_random_programs_deadlock_and_do_not() -> None:
    graphs = [build(random_program(seed, FLAG_KINDS, 12, FLAG_STREAMS)) for seed in range(200)]
    assert 20 < sum(deadlock(graph) is not None for graph in graphs) < 180


def test_the_random_programs_race_and_do_not() -> None:
    full = sum(bool(run(random_program(seed)).races()) for seed in range(300))
    thin = sum(bool(run(thinned(random_program(seed), seed)).races()) for seed in range(300))
    assert 30 < full < 270
    assert 15 < thin < 150
