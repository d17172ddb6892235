"""A witness is a legal order, shows its race, and no order does it with fewer changes of lane; counts are exact."""

from collections.abc import Iterator
from itertools import combinations

import pytest

from refimpl.order import Overtaking, Witness, explore, lower
from refimpl.order.explore_moves import moves_of
from refimpl.order.explore_witness import in_issue_order
from refimpl.program import HOST, Program, Verdict
from tests.litmus import words as w
from tests.oracle.orders import Run, Step, all_orders, fewest_switches, meets, replayed
from tests.oracle.test_clocks_against_explorer import CASES, FLAG_KINDS, FLAG_STREAMS
from tests.property.programs import assert_never, random_program


def witnesses(program: Program) -> Iterator[tuple[Overtaking, Witness]]:
    for race in explore(program, count=False).races:
        assert race.witness is not None
        yield race, race.witness


def eager(program: Program) -> list[Step]:
    """The order in which every step is made as soon as it may: the lanes', as they were issued, before the host's."""
    run = Run(lower(program))
    while lanes := run.lanes():
        issued = {lane: step[1] for lane, step in lanes.items() if lane is not HOST}
        run = run.after(min(issued, key=issued.__getitem__) if issued else HOST)
    return run.order


def shows(program: Program, race: Overtaking, witness: Witness) -> bool:
    """Its last step meets a step of the other op that comes before it in the order of issue, and was not made yet."""
    units, order = lower(program), eager(program)
    run = replayed(units, witness.id)
    last = run.order[-1]
    late = [("call", witness.late), *(("unit", index) for index in units.calls[witness.late].units)]
    overtaken = [step for step in late if step not in run.order and step != last and meets(units, step, last)]
    return {witness.early, witness.late} == set(race.pair) and any(
        order.index(step) < order.index(last) for step in overtaken if step in order and last in order
    )


@pytest.mark.parametrize("program", CASES)
def test_every_race_of_the_cases_has_a_legal_order_that_shows_it(program: Program) -> None:
    for race, witness in witnesses(program):
        if explore(program, count=False).verdict is Verdict.RACE:
            assert shows(program, race, witness), race
        assert len(witness.steps) == len(replayed(lower(program), witness.id).order)


def test_every_race_of_random_programs_has_one() -> None:
    def broken(program: Program) -> bool:
        if explore(program, count=False).verdict is not Verdict.RACE:
            return False
        return not all(shows(program, race, witness) for race, witness in witnesses(program))

    assert_never(broken, [random_program(seed) for seed in range(50_000, 50_150)])
    assert_never(broken, [random_program(seed, FLAG_KINDS, 12, FLAG_STREAMS) for seed in range(100)])


def changes_more_than_it_must(program: Program) -> bool:
    units = lower(program)
    return any(
        witness.shortest and witness.switches != fewest_switches(units, witness.early, witness.late)
        for _, witness in witnesses(program)
    )


def test_no_order_shows_the_race_with_fewer_changes_of_lane() -> None:
    small = [random_program(seed, length=9) for seed in range(60_000, 60_120)]
    assert_never(changes_more_than_it_must, small)


def test_no_step_of_a_witness_can_be_left_out() -> None:
    for seed in range(60_000, 60_060):
        program = random_program(seed)
        for _, witness in witnesses(program):
            order = replayed(lower(program), witness.id).order
            for k in range(len(order) - 1):
                assert not _legal(program, [*order[:k], *order[k + 1 :]]), (program.id, witness.id, k)


def _legal(program: Program, order: list[Step]) -> bool:
    run = Run(lower(program))
    for step in order:
        lane = next((lane for lane, next_ in run.lanes().items() if next_ == step), "none")
        if lane == "none":
            return False
        run = run.after(lane)  # type: ignore[arg-type]
    return True


def counts_differ(program: Program) -> bool:
    """Against a walk through every order: two orders are one trace if all steps that meet come in the same order."""
    units = lower(program)
    orders = list(all_orders(units))
    traces = {frozenset((a, b) for a, b in combinations(order, 2) if meets(units, a, b)) for order in orders}
    found = explore(program)
    return (found.orders, found.traces) != (len(orders), len(traces))


def test_orders_and_traces_are_counted_exactly() -> None:
    tiny = [random_program(seed, length=7) for seed in range(70_000, 70_150)]
    assert_never(counts_differ, [program for program in tiny if (explore(program).orders or 0) < 500])


def test_a_program_without_races_has_one_trace_and_k_independent_pairs_have_two_to_the_k() -> None:
    ordered = (w.write("s"), w.record("e", "s"), w.wait("e", "t"), w.read("t"))
    assert explore(w.program(*ordered)).traces == 1
    pairs = (w.write("s"), w.read("t"), w.device_synchronize(), w.write("s"), w.read("t"))
    assert explore(w.program(*pairs)).traces == 4


def test_in_the_order_of_issue_a_program_without_flags_runs_as_it_was_issued() -> None:
    for seed in range(100):
        moves = moves_of(lower(random_program(seed)))
        assert in_issue_order(moves) == list(range(len(moves.all)))


def test_where_the_search_grows_too_wide_a_legal_order_is_shown_and_not_called_the_shortest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("refimpl.order.explore_witness.WIDEST", 1)
    ops = (w.write("s"), w.wait_stream("t", "s"), w.read("t"), w.read("u"), w.wait_stream("u", "t"), w.write("u"))
    program = w.program(*ops, w.write("s"))
    found = list(witnesses(program))
    assert found
    for race, witness in found:
        assert not witness.shortest
        assert shows(program, race, witness)
