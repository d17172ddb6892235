"""The component's model, in the browser's language, says what refimpl says: verdicts, racing pairs, times."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from refimpl.order import build, check, races_in
from refimpl.program import Program, Verdict, program_from_json, program_to_json, read_programs
from refimpl.timeline import schedule
from tests.view import programs

HERE = Path(__file__).parent
CASES = HERE.parent / "cases" / "stream-programs.json"


def judge(told: list[Program]) -> list[dict[str, Any]]:
    """What the component's model says of each program."""
    text = json.dumps([program_to_json(program) for program in told])
    done = subprocess.run(
        ["node", HERE / "judge.mjs"], input=text, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    said: list[dict[str, Any]] = json.loads(done.stdout)
    return said


def compare(told: list[Program]) -> list[str]:
    """Where the two differ, in words; empty when they agree."""
    return [f"{p.id}: {text}" for p, said in zip(told, judge(told), strict=True) for text in _differences(p, said)]


def _differences(program: Program, said: dict[str, Any]) -> list[str]:
    report = check(program)
    if said["verdict"] != report.verdict:
        return [f"the component says {said['verdict']}, refimpl {report.verdict}"]
    if report.verdict is Verdict.DEADLOCK:
        return []
    pairs = {(race.first.op, race.second.op) for race in races_in(build(program))}
    found = {tuple(pair) for pair in said["pairs"]}
    wrong = [f"{sorted(found - pairs)} do not race"] if found - pairs else []
    here = sorted((op, lane, kind, round(start, 3), round(end, 3)) for op, lane, kind, start, end in said["spans"])
    spans = schedule(program).spans
    there = sorted((s.op or 0, s.lane, str(s.kind), round(s.start_us, 3), round(s.end_us, 3)) for s in spans)
    return wrong + [f"times differ: {set(here) ^ set(there)}"] * (here != there)


def test_on_every_program_of_the_shared_catalogue() -> None:
    assert compare(list(read_programs(CASES))) == []


@pytest.mark.parametrize("flags", [False, True], ids=["ordinary programs", "programs with flags"])
def test_on_random_programs_over_the_whole_format(flags: bool) -> None:
    told = [program_from_json(programs.program(seed, flags)) for seed in range(400)]
    assert compare(told) == []


def test_the_random_programs_are_of_every_verdict() -> None:
    told = [program_from_json(programs.program(seed, flags=True)) for seed in range(100)]
    assert {check(program).verdict for program in told} == set(Verdict)
