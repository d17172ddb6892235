"""``python -m refimpl explore`` and ``fences``: verdicts, witnesses and counts; exit codes as ``check``."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refimpl.order import check
from refimpl.program import read_programs

CASES = Path(__file__).parents[2] / "cases" / "stream-programs.json"
Run = Callable[..., subprocess.CompletedProcess[str]]

LENS = {"buf": "lens", "off": 0, "len": 64}
WRITE = {"op": "launch", "stream": "forward", "name": "verify", "writes": [LENS]}
READ = {"op": "launch", "stream": "schedule", "name": "gather", "reads": [LENS]}
WAIT = {"op": "stream_wait_stream", "stream": "schedule", "on": "forward"}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def _write(*ops: dict[str, Any], id: str = "mine") -> Path:
        file = tmp_path / "program.json"
        head = {"schema": 1, "id": id, "streams": {"forward": {}, "schedule": {}}}
        buffers = {"lens": {"mem": "device", "bytes": 64}}
        file.write_text(json.dumps({**head, "buffers": buffers, "ops": list(ops)}))
        return file

    return _write


def test_every_case_gets_the_verdict_of_check_and_every_race_a_witness(refimpl: Run) -> None:
    done = refimpl("explore", CASES, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["id"]: line["verdict"] for line in lines} == {q.id: check(q).verdict for q in read_programs(CASES)}
    assert all(race["witness"]["id"] for line in lines for race in line["races"])


def test_a_race_is_exit_1_with_its_order_in_words_and_as_a_schedule(refimpl: Run, write: Callable[..., Path]) -> None:
    done = refimpl("explore", write(WRITE, READ))
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "mine: race",
        "  visited 6 of 7 states by 6 transitions; orders: 3; traces: 2",
        "  RAW on lens[0:64]: op 0 verify on forward and op 1 gather on schedule can come in either order",
        "    schedule h2.2 has op 1 before op 0 (1 change of lane, the fewest):",
        "      host: op 0 verify, op 1 gather",
        "      schedule: op 1 gather",
        "1 program, 1 with a race or a deadlock",
    ]


def test_an_ordered_program_is_exit_0_and_an_open_verdict_exit_3(refimpl: Run, write: Callable[..., Path]) -> None:
    file = write(WRITE, WAIT, READ)
    assert refimpl("explore", file).returncode == 0
    done = refimpl("explore", file, "--states", "2")
    assert done.returncode == 3
    assert "the bound states=2 was hit after 2 states: there may be more to find" in done.stdout
    assert done.stdout.endswith("1 program, 0 with a race or a deadlock, 1 unknown\n")


def test_one_case_of_a_file_can_be_named(refimpl: Run) -> None:
    done = refimpl("explore", CASES, "--case", "02_event/fixed", "--json", "--every-state")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["02_event/fixed"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--case", "nobody"], "no case 'nobody'; there are 02_event/missing, "),
        (["--states", "0"], "--states 0: give a number above 0"),
        (["--seconds", "-1"], "--seconds -1.0: give a number above 0"),
    ],
)
def test_bad_input_is_exit_2_and_one_sentence(refimpl: Run, words: list[str], says: str) -> None:
    done = refimpl("explore", CASES, *words)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert says in done.stderr


def test_names_do_not_reach_the_terminal_as_commands(refimpl: Run, write: Callable[..., Path]) -> None:
    evil = {**WRITE, "name": "v\x1b[2J\r\n"}
    for command, ops in (("explore", (evil, READ)), ("fences", (evil, WAIT, READ))):
        done = refimpl(command, write(*ops, id="v\x1b[2J"))
        assert all(line.isprintable() for line in done.stdout.splitlines())
        assert r"v\x1b[2J: " in done.stdout


def test_fences_are_counted_and_each_is_needed_or_says_what_else_orders(
    refimpl: Run, write: Callable[..., Path]
) -> None:
    done = refimpl("fences", write(WRITE, WAIT, WAIT, READ))
    assert done.returncode == 1
    first, one, two, together, summary = done.stdout.splitlines()
    assert first == "mine: 0 needed, 2 redundant"
    assert one.startswith("  op 1 wait_stream(forward): redundant: op 0 still comes before op 3: ")
    assert two.startswith("  op 2 wait_stream(forward): redundant: ")
    assert together == "  not all together: 1 of these 2 can go, such as op 1 wait_stream(forward)"
    assert summary.endswith("0 needed, 2 redundant, 1 removable together")


def test_a_program_whose_fences_are_all_needed_is_exit_0_with_the_schedule_that_shows_why(
    refimpl: Run, write: Callable[..., Path]
) -> None:
    done = refimpl("fences", write(WRITE, WAIT, READ))
    assert done.returncode == 0
    assert "op 1 wait_stream(forward): needed: RAW on lens[0:64]" in done.stdout
    assert ", as in h3.2" in done.stdout
    (line,) = refimpl("fences", write(WRITE, WAIT, READ), "--json").stdout.splitlines()
    data = json.loads(line)
    assert (data["needed"], data["redundant"], data["removable"]) == (1, 0, [])
    assert data["fences"][0]["race"]["witness"]["id"] == "h3.2"


def test_a_program_with_a_race_has_its_fences_not_judged(refimpl: Run, write: Callable[..., Path]) -> None:
    done = refimpl("fences", write(WRITE, READ))
    assert done.returncode == 1
    assert "mine: has a race of its own, so its fences are not judged" in done.stdout
