"""Programs made to break a checker: each verdict was derived from the rule it names, before any checker saw it."""

from pathlib import Path
from typing import Any

import pytest

from refimpl.order import build, check, races_in
from refimpl.program import Program, Verdict, read_programs

PROGRAMS = read_programs(Path(__file__).with_name("programs.json"))


def cases() -> list[Any]:
    return [pytest.param(q, id=q.id) for q in PROGRAMS]


@pytest.mark.parametrize("program", cases())
def test_the_verdict_is_the_one_that_the_rule_gives(program: Program) -> None:
    report = check(program)
    assert report.verdict == program.expect, program.words
    if program.expect is Verdict.RACE:
        found = {(race.first.op, race.second.op) for race in report.races}
        assert found & set(program.racing_ops), program.words


@pytest.mark.parametrize("program", cases())
def test_reachability_says_the_same(program: Program) -> None:
    if program.expect is not Verdict.DEADLOCK:
        assert bool(races_in(build(program))) == (program.expect is Verdict.RACE), program.words


def test_every_program_says_why_and_by_which_rule() -> None:
    assert len({program.id for program in PROGRAMS}) == len(PROGRAMS)
    assert all(program.words and program.source for program in PROGRAMS)
    assert {program.expect for program in PROGRAMS} == set(Verdict)
