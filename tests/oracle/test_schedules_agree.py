"""The timeline component and ``refimpl.timeline`` compute the same times from the same program."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from refimpl.program import GraphLaunch, Op, Program, ProgramError, program_to_json, read_programs
from refimpl.timeline import schedule
from tests.property.programs import KINDS, WITH_FLAGS, random_program

HERE = Path(__file__).parent
CASES = read_programs(HERE.parent / "cases" / "stream-programs.json")
RANDOM = 400

# The model's tail marks and the host's staging of a pageable source are no spans of their own in a Trace.
DRAWN = {"run": "run", "record": "record", "wait": "wait", "sync": "blocked", "host": "host", "agent": "host"}
HIDDEN = ("record", "host")

Times = tuple[tuple[int, str, str, float, float], ...]


def in_browser(programs: list[Program]) -> list[Times | str]:
    """What node makes of the programs: sorted times, or a word for those that cannot be scheduled."""
    command = ["node", str(HERE / "schedules.mjs")]
    given = json.dumps([program_to_json(program) for program in programs])
    answer = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300, check=True)
    return [_browser_times(result) for result in json.loads(answer.stdout)]


def _browser_times(result: dict[str, Any]) -> Times | str:
    if "error" in result:
        return f"error: {result['error']}"
    if "stuck" in result:
        return "deadlock"
    spans = [s for s in result["spans"] if s["kind"] in DRAWN and not (s["implicit"] and s["kind"] in HIDDEN)]
    return tuple(sorted((s["op"], s["lane"], DRAWN[s["kind"]], float(s["start"]), float(s["end"])) for s in spans))


def in_python(program: Program) -> Times | str:
    try:
        spans = schedule(program).spans
    except ProgramError as error:
        return "deadlock" if "deadlock" in str(error) else f"error: {error}"
    return tuple(sorted((s.op or 0, s.lane, str(s.kind), s.start_us, s.end_us) for s in spans))


def same(a: Times | str, b: Times | str) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str) and a.split(":")[0] == b.split(":")[0]
    return [t[:3] for t in a] == [t[:3] for t in b] and all(
        p == pytest.approx(q, abs=1e-6) for p, q in zip((t[3:] for t in a), (t[3:] for t in b), strict=True)
    )


def disagreements(programs: list[Program]) -> list[str]:
    found = []
    for program, browser in zip(programs, in_browser(programs), strict=True):
        python = in_python(program)
        if not same(browser, python):
            only = (
                (set(browser) ^ set(python))
                if not isinstance(browser, str) and not isinstance(python, str)
                else (browser, python)
            )
            found.append(f"{program.id}: {sorted(map(str, only))[:4]}")
    return found


def timed(program: Program, seed: int) -> Program:
    """The program with durations on most of its ops and nodes, so that every order of ends comes up."""
    rng = Random(seed)

    def us() -> float | None:
        return rng.choice((None, 0.0, 3.5, 20.0, 90.0, 250.0))

    def with_time(op: Op) -> Op:
        if isinstance(op, GraphLaunch):
            return replace(op, us=us(), nodes=tuple(replace(node, us=us()) for node in op.nodes))
        return replace(op, us=us())

    return replace(program, ops=tuple(map(with_time, program.ops)))


def test_every_case_of_the_list_gets_the_same_times() -> None:
    assert len(CASES) == 129
    assert disagreements(list(CASES)) == []


def test_random_programs_over_all_ops_get_the_same_times() -> None:
    programs = [timed(random_program(seed, KINDS, length=24), seed) for seed in range(RANDOM)]
    assert disagreements(programs) == []
    assert sum(not isinstance(in_python(program), str) for program in programs) > RANDOM * 0.8


def test_random_programs_with_flags_get_the_same_times_or_the_same_deadlock() -> None:
    programs = [
        timed(random_program(seed, (*WITH_FLAGS, "launch", "stream_sync"), length=14), seed) for seed in range(RANDOM)
    ]
    assert disagreements(programs) == []
    verdicts = [in_python(program) for program in programs]
    assert "deadlock" in verdicts
    assert any(isinstance(verdict, tuple) for verdict in verdicts)
