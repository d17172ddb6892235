"""``python -m refimpl replay``: an order in words, the values that come out, exit codes, errors of one sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from refimpl.cli import main

CASES = Path(__file__).parents[1] / "cases" / "stream-programs.json"

LENS = {"buf": "lens", "off": 0, "len": 64}
WRITE = {"op": "launch", "stream": "forward", "name": "verify", "writes": [LENS]}
READ = {"op": "launch", "stream": "schedule", "name": "gather", "reads": [LENS]}
WAIT = {"op": "stream_wait_stream", "stream": "schedule", "on": "forward"}
STUCK = {"op": "stream_wait_value", "stream": "forward", "flag": "go"}
STALE = (
    "op 1 'gather' on schedule reads the value of op 0 'verify' in lens[0:64]; under h2.2 it reads the initial value"
)


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def refimpl(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process: a process of its own spends seconds on importing torch."""

    def _run(*words: object) -> Done:
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
        return Done(code, *capsys.readouterr())

    return _run


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def _write(*ops: dict[str, Any]) -> Path:
        streams = {"forward": {"kind": "nonblocking"}, "schedule": {"kind": "nonblocking"}}
        head = {"schema": 1, "id": "mine", "streams": streams, "buffers": {"lens": {"mem": "device", "bytes": 64}}}
        file = tmp_path / "program.json"
        file.write_text(json.dumps({**head, "ops": list(ops)}))
        return file

    return _write


def test_a_racy_program_is_shown_in_its_shortest_bad_order(refimpl: Run, write: Callable[..., Path]) -> None:
    done = refimpl("replay", write(WRITE, READ))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "mine: RAW on lens[0:64]: op 0 verify on forward and op 1 gather on schedule can come in either order",
        "  schedule h2.2:",
        "    host: op 0 verify, op 1 gather",
        "    schedule: op 1 gather",
        "    then each op as soon as it may, in the order of issue",
        f"  {STALE}",
    ]


def test_an_ordered_program_shows_its_values_and_is_exit_0(refimpl: Run, write: Callable[..., Path]) -> None:
    done = refimpl("replay", write(WRITE, WAIT, READ))
    assert done.returncode == 0
    assert "op 2 'gather' on schedule reads lens[0:64]: the value of op 0 'verify'" in done.stdout


def test_json_has_the_right_value_and_the_one_that_came_out(refimpl: Run, write: Callable[..., Path]) -> None:
    found = json.loads(refimpl("replay", write(WRITE, READ), "--schedule", "h2.2.1", "--json").stdout)
    (one,) = found["differences"]
    assert (found["id"], found["schedule"], found["deadlock"]) == ("mine", "h2.2", None)
    assert (one["op"], one["right"], one["got"]) == (1, "the value of op 0 'verify'", "the initial value")
    assert one["words"] == STALE


def test_a_seed_draws_the_same_order_each_time(refimpl: Run, write: Callable[..., Path]) -> None:
    file = write(WRITE, READ)
    drawn = {seed: refimpl("replay", file, "--seed", str(seed), "--json").stdout for seed in (0, 1, 2)}
    assert drawn[2] == refimpl("replay", file, "--seed", "2", "--json").stdout
    assert {json.loads(out)["schedule"] for out in drawn.values()} != {""}


def test_a_deadlock_is_exit_1_with_who_waits(refimpl: Run, write: Callable[..., Path]) -> None:
    file = write(STUCK, WRITE)
    done = refimpl("replay", file, "--schedule", "h2")
    assert done.returncode == 1
    assert "mine: deadlock in every order: forward stands at op 0, waiting for go" in done.stdout
    assert json.loads(refimpl("replay", file, "--json").stdout)["deadlock"]["ops"] == [0]


def test_one_of_many_programs_is_named(refimpl: Run) -> None:
    done = refimpl("replay", CASES)
    assert (done.returncode, done.stderr) == (
        2,
        f"refimpl replay: {CASES}: has 129 programs: name one with --case\n",
    )
    assert refimpl("replay", CASES, "--case", "02_event/fixed").returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--schedule", "h2.1x2"], "step 4 of 4 runs lane 1, which has no op: the schedule belongs to another program"),
        (["--schedule", "2h"], "schedule '2h': '2h' is no step"),
        (["--case", "theirs"], "no case 'theirs'; there are mine"),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    refimpl: Run, write: Callable[..., Path], words: list[str], sentence: str
) -> None:
    done = refimpl("replay", write(WRITE, READ), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert sentence in done.stderr


def test_an_order_is_named_once(refimpl: Run, write: Callable[..., Path]) -> None:
    done = refimpl("replay", write(WRITE, READ), "--seed", "1", "--schedule", "h2")
    assert done.returncode == 2
    assert "not allowed with argument" in done.stderr


def test_explore_shows_the_values_of_each_witness_when_asked(refimpl: Run, write: Callable[..., Path]) -> None:
    file = write(WRITE, READ)
    assert STALE in refimpl("explore", file, "--replay").stdout
    assert STALE not in refimpl("explore", file).stdout
    (race,) = json.loads(refimpl("explore", file, "--replay", "--json").stdout)["races"]
    assert (race["right"], race["got"]) == ("the value of op 0 'verify'", "the initial value")
    assert race["outcome"] == STALE


def test_explore_replays_no_program_that_stands_still(refimpl: Run, write: Callable[..., Path]) -> None:
    done = refimpl("explore", write(WRITE, READ, STUCK), "--replay")
    assert done.returncode == 1
    assert "deadlock" in done.stdout
