"""``python -m refimpl check``: exit codes, one JSON object a line, one clear sentence for bad input."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).parents[2] / "cases" / "stream-programs.json"
Run = Callable[..., subprocess.CompletedProcess[str]]

LENS = {"buf": "lens", "off": 0, "len": 64}
WRITE = {"op": "launch", "stream": "forward", "name": "verify", "writes": [LENS]}
READ = {"op": "launch", "stream": "schedule", "name": "gather", "reads": [LENS]}
WAIT = {"op": "stream_wait_stream", "stream": "schedule", "on": "forward"}


def program(*ops: dict[str, Any], **fields: Any) -> dict[str, Any]:
    streams = {"forward": {"kind": "nonblocking"}, "schedule": {"kind": "nonblocking"}}
    head = {"schema": 1, "id": "mine", "streams": streams, "buffers": {"lens": {"mem": "device", "bytes": 64}}}
    return {**head, "ops": list(ops), **fields}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Any], Path]:
    def _write(data: Any) -> Path:
        file = tmp_path / "program.json"
        file.write_text(data if isinstance(data, str) else json.dumps(data))
        return file

    return _write


def test_every_case_gets_its_verdict(refimpl: Run) -> None:
    done = refimpl("check", CASES, "--expect")
    assert done.returncode == 0
    assert "129 programs, 129 as expected, 0 not" in done.stdout


def test_json_is_one_object_a_line_with_a_listed_pair_among_the_races(refimpl: Run) -> None:
    cases = json.loads(CASES.read_text())["cases"]
    lines = [json.loads(line) for line in refimpl("check", CASES, "--json").stdout.splitlines()]
    assert [line["id"] for line in lines] == [case["id"] for case in cases]
    for line, case in zip(lines, cases, strict=True):
        assert set(line) == {"id", "verdict", "races", "deadlock", "lints", "disputed"}
        assert (line["verdict"], line["disputed"]) == (case["expect"], case["disputed"])
        pairs = {(race["first"], race["second"]) for race in line["races"]}
        assert not case["racing_ops"] or pairs & {tuple(pair) for pair in case["racing_ops"]}


def test_a_race_is_exit_1_and_names_both_ops_the_bytes_and_the_edge(refimpl: Run, write: Callable[[Any], Path]) -> None:
    done = refimpl("check", write(program(WRITE, READ)))
    assert done.returncode == 1
    for words in (
        "mine: race",
        "RAW on lens[0:64]",
        "op 0 verify on forward",
        "op 1 gather on schedule",
        "record an event",
    ):
        assert words in done.stdout


def test_an_ordered_program_is_exit_0(refimpl: Run, write: Callable[[Any], Path]) -> None:
    assert refimpl("check", write(program(WRITE, WAIT, READ))).returncode == 0


def test_a_deadlock_is_its_own_verdict_and_exit_1(refimpl: Run, write: Callable[[Any], Path]) -> None:
    wait = {"op": "stream_wait_value", "stream": "forward", "flag": "go"}
    done = refimpl(
        "check", write(program(wait, {"op": "stream_write_value", "stream": "forward", "flag": "go"})), "--json"
    )
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"], found["deadlock"]["ops"]) == (1, "deadlock", [0])


def test_expect_turns_a_racy_case_marked_ok_into_exit_1(refimpl: Run, write: Callable[[Any], Path]) -> None:
    done = refimpl("check", write(program(WRITE, READ, expect="ok")), "--expect")
    assert done.returncode == 1
    assert "mine: race, expected ok" in done.stdout


def test_expect_without_a_verdict_to_compare_with_is_bad_input(refimpl: Run, write: Callable[[Any], Path]) -> None:
    assert refimpl("check", write(program(WRITE)), "--expect").returncode == 2


def test_as_observed_counts_on_what_drivers_do(refimpl: Run) -> None:
    strict, observed = (
        [json.loads(line)["verdict"] for line in refimpl("check", CASES, "--json", *more).stdout.splitlines()]
        for more in ((), ("--as-observed",))
    )
    ids = [case["id"] for case in json.loads(CASES.read_text())["cases"]]
    changed = {name for name, a, b in zip(ids, strict, observed, strict=True) if a != b}
    assert {
        "08_memcpy_h2d_send",
        "16_alloc_device/fixed",
        "16_alloc_managed/fixed",
        "sem_memset_managed_host",
    } <= changed
    assert "16_alloc_device/missing" not in changed


def test_disputed_cases_are_reported_apart(refimpl: Run) -> None:
    text = refimpl("check", CASES).stdout
    head, _, apart = text.partition("Disputed")
    disputed = [case["id"] for case in json.loads(CASES.read_text())["cases"] if case["disputed"]]
    assert disputed
    for name in disputed:
        assert f"{name}:" in apart
        assert f"{name}:" not in head


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ('{"schema": 1, "ops": [', "is not JSON"),
        ("", "the file is empty"),
        (program({"op": "lanch", "stream": "forward"}), "op 0, field 'op': unknown op \"lanch\""),
        (program({**READ, "reads": [{**LENS, "len": 65}]}), "op 0, field 'reads': range lens[0:65] ends at byte 65"),
        (program(WRITE, {**READ, "stream": "plan"}), "op 1, field 'stream': unknown stream 'plan'"),
        (program({**WRITE, "colour": "red"}), "op 0, field 'colour': unknown field"),
    ],
)
def test_bad_input_is_exit_2_and_one_sentence_that_says_where(
    refimpl: Run, write: Callable[[Any], Path], data: Any, words: str
) -> None:
    file = write(data)
    done = refimpl("check", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert str(file) in done.stderr
    assert words in done.stderr


def test_a_directory_and_a_missing_file_are_bad_input(refimpl: Run, tmp_path: Path) -> None:
    for path, words in ((tmp_path, "is a directory"), (tmp_path / "none.json", "No such file")):
        done = refimpl("check", path)
        assert done.returncode == 2
        assert words in done.stderr


def test_a_good_file_before_a_bad_one_prints_nothing(
    refimpl: Run, write: Callable[[Any], Path], tmp_path: Path
) -> None:
    done = refimpl("check", write(program(WRITE)), tmp_path / "none.json", "--json")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_dash_is_standard_input(refimpl: Run) -> None:
    done = refimpl("check", "-", input=json.dumps(program(WRITE, READ)))
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "mine: race")
    wrong = refimpl("check", "-", input="{")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("refimpl check: standard input: is not JSON")


EVIL = "v\x1b[2J\x07\r\n\u202e\ud800é"


def test_names_do_not_reach_the_terminal_as_commands(refimpl: Run, write: Callable[[Any], Path]) -> None:
    ops = ({**WRITE, "stream": EVIL, "name": EVIL}, {**READ, "name": EVIL})
    streams = {EVIL: {}, "schedule": {}}
    done = refimpl("check", write(program(*ops, id=EVIL, streams=streams)))
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 3
    assert all(line.isprintable() for line in done.stdout.splitlines())
    assert r"v\x1b[2J\x07\r\n\u202e\ud800é: race" in done.stdout


def test_a_terminal_without_the_letters_gets_verdict_and_valid_json(
    refimpl: Run, write: Callable[[Any], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    file = write(program(WRITE, READ, id=EVIL))
    done = refimpl("check", file)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(r"v\x1b[2J\x07\r\n\u202e\ud800\xe9: race")
    assert json.loads(refimpl("check", file, "--json").stdout)["id"] == EVIL


def test_help_says_what_expect_means_beside_as_observed(refimpl: Run) -> None:
    assert "with --as-observed, --expect" in " ".join(refimpl("check", "--help").stdout.split())


def test_a_file_of_100_mb_is_judged_in_bounded_time(refimpl: Run, write: Callable[[Any], Path]) -> None:
    site = "a/long/path/of/a/recorded/program/" * 12 + "loop.py:41 (run_batch)"
    ops = [{**(WRITE if k % 2 else READ), "site": f"{site}{k % 7}"} for k in range(190_000)]
    file = write(program(*ops))
    assert file.stat().st_size > 100e6
    begin = time.monotonic()
    done = refimpl("check", file, "--json")
    assert done.returncode == 1
    assert time.monotonic() - begin < 240
    assert json.loads(done.stdout)["verdict"] == "race"
