"""Every program with a known verdict, and random ones: races change values, and what is ordered does not."""

from pathlib import Path

import pytest

from refimpl.device import sim
from refimpl.order import check, explore
from refimpl.play import compare, play
from refimpl.program import Program, UserError, Verdict, read_programs
from tests.property.programs import KINDS, WITH_FLAGS, assert_never, random_program, thinned

TESTS = Path(__file__).parents[1]
PROGRAMS = [
    program
    for file in (TESTS / "cases" / "stream-programs.json", TESTS / "litmus" / "programs.json")
    for program in read_programs(file)
]
RANDOM = [random_program(seed, kinds=(*KINDS, *WITH_FLAGS)) for seed in range(60)]
RANDOM += [thinned(random_program(seed), seed) for seed in range(60, 160)]


def of_verdict(programs: list[Program], verdict: Verdict) -> list[Program]:
    return [program for program in programs if check(program).verdict is verdict]


def changes_under_a_seed(program: Program, seeds: range) -> bool:
    right = play(program).values()
    return any(play(program, sim().Adversary(seed=seed)).values() != right for seed in seeds)


@pytest.mark.parametrize("program", of_verdict(PROGRAMS, Verdict.RACE), ids=lambda program: program.id)
def test_every_race_has_a_witness_that_replays_to_a_wrong_value(program: Program) -> None:
    races = explore(program, count=False).races
    assert races
    for race in races:
        assert race.witness is not None
        found = compare(program, race.witness.id, race.pair)
        assert found.differences, f"{race} under {race.witness.id}"


def test_ordered_programs_have_the_same_values_under_20_seeds() -> None:
    ordered = of_verdict(PROGRAMS, Verdict.OK)
    assert len(ordered) > 100
    assert [program.id for program in ordered if changes_under_a_seed(program, range(20))] == []


def test_ordered_random_programs_have_the_same_values_under_seeds_and_in_virtual_time() -> None:
    def broken(program: Program) -> bool:
        if check(program).verdict is not Verdict.OK:
            return False
        in_time = play(program, sim().Timed()).values()
        return in_time != play(program).values() or changes_under_a_seed(program, range(6))

    assert sum(check(program).verdict is Verdict.OK for program in RANDOM) > 50
    assert_never(broken, RANDOM)


def test_an_order_drawn_by_a_seed_replays_to_the_byte() -> None:
    different = 0
    for program in of_verdict(RANDOM, Verdict.RACE)[:40]:
        for seed in range(3, 9):
            drawn = play(program, sim().Adversary(seed=seed))
            again = play(program, sim().Replay(drawn.id))
            assert (again.values(), again.id, again.steps) == (drawn.values(), drawn.id, drawn.steps), program.id
            different += drawn.values() != play(program).values()
    assert different > 50


def test_most_witnesses_of_random_races_change_a_value() -> None:
    """Not all: a third write may cover two that race before anyone reads."""
    found = [
        compare(program, race.witness.id, race.pair)
        for program in of_verdict(RANDOM, Verdict.RACE)[:30]
        for race in explore(program, count=False).races
        if race.witness is not None
    ]
    wrong = sum(bool(outcome.differences) for outcome in found)
    assert len(found) > 100
    assert wrong > 0.9 * len(found)


def test_a_deadlock_is_one_in_the_order_of_issue_and_in_virtual_time() -> None:
    stuck = of_verdict(PROGRAMS + RANDOM, Verdict.DEADLOCK)
    assert len(stuck) > 5
    for program in stuck:
        for schedule in (None, sim().Timed()):
            with pytest.raises(RuntimeError, match=r"^deadlock: "):
                play(program, schedule)


def test_the_witness_of_one_program_does_not_fit_another() -> None:
    racy = of_verdict(PROGRAMS, Verdict.RACE)
    longest = max(racy, key=lambda program: len(program.ops))
    witness = explore(longest, count=False).races[-1].witness
    assert witness is not None
    shortest = min(racy, key=lambda program: len(program.ops))
    with pytest.raises(UserError, match="the schedule belongs to another program"):
        compare(shortest, witness.id)
