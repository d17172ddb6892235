"""``python -m refimpl trace``: the accounts of one trace, and of two side by side."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from refimpl.timeline import to_chrome
from refimpl.timeline.reports.report import report
from refimpl.timeline.reports.report_text import comparison, lines
from tests.unit.timeline.recorded import held, measured, overlapped, self_fenced

CASES = Path(__file__).parents[2] / "cases" / "stream-programs.json"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def fenced(tmp_path: Path) -> Path:
    path = tmp_path / "fenced.json"
    path.write_text(json.dumps(to_chrome(self_fenced())))
    return path


@pytest.fixture
def free(tmp_path: Path) -> Path:
    path = tmp_path / "free.json"
    path.write_text(json.dumps(to_chrome(overlapped())))
    return path


def test_blocking_calls_stand_first_with_count_and_total(refimpl: Run, fenced: Path) -> None:
    done = refimpl("trace", fenced)
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout.splitlines()
    assert text[2] == "Host blocked: 0.812 ms in 2 calls"
    assert text[3].split("  ")[1:] == [
        "cudaEventSynchronize × 2",
        "0.812 ms",
        "longest 0.406 ms",
        "synchronize(verify_done)",
    ]


def test_json_is_one_report_a_line_and_is_named_by_its_file(refimpl: Run, fenced: Path, free: Path) -> None:
    found = [json.loads(line) for line in refimpl("trace", "--json", fenced, free).stdout.splitlines()]
    assert found == [
        report(self_fenced(), str(fenced)).to_json(),
        report(overlapped(), str(free)).to_json(),
    ]


def test_several_files_are_also_set_side_by_side(refimpl: Run, fenced: Path, free: Path) -> None:
    text = refimpl("trace", fenced, free).stdout
    rows = {line[:50].strip(): line.split()[-4:] for line in text.split("\n\n")[-1].splitlines()}
    # 1032 becomes 918, and of two calls that held the host for 812 one is left, with 698.
    assert rows["whole trace"] == ["1.032", "0.918", "-11.0", "%"]
    assert rows["cudaEventSynchronize, synchronize(verify_done)"] == ["0.812", "0.698", "-14.0", "%"]
    assert rows["times"][-2:] == ["2", "1"]


def test_cause_that_is_not_in_the_second_trace_is_gone_and_one_that_was_not_in_the_first_is_new() -> None:
    with_fence, without = report(self_fenced()), report(overlapped())
    after = "the host was late, after synchronize(verify_done)"
    assert next(x for x in comparison({"a": with_fence, "b": without}) if after in x).endswith("gone")
    assert next(x for x in comparison({"a": without, "b": with_fence}) if after in x).endswith("new")


def test_long_lists_end_in_the_sum_of_the_rest() -> None:
    trace = measured(*(held(f"synchronize({name})", 10 * n, 10 * n + n) for n, name in enumerate("abcde")))
    text = lines(report(trace), top=2)
    # 4 and 3 are shown; 2 and 1 are the rest, and a takes no time.
    assert "and 2 more kinds" in text[5]
    assert "0.003 ms" in text[5]


def test_a_program_is_scheduled_first(refimpl: Run) -> None:
    ids = [case["id"] for case in json.loads(CASES.read_text())["cases"] if case["expect"] == "ok"]
    done = refimpl("trace", CASES, "--case", ids[0], "--json")
    assert (done.returncode, json.loads(done.stdout)["source"]) == (0, str(CASES))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"traceEvents": []}', "no"])
def test_bad_file_is_exit_2_and_one_sentence(text: str, refimpl: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    done = refimpl("trace", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("refimpl trace: ")
    assert done.stderr.count("\n") == 1
    assert str(path) in done.stderr


def test_missing_file_and_no_rows_are_exit_2(refimpl: Run, fenced: Path, tmp_path: Path) -> None:
    assert refimpl("trace", tmp_path / "none.json").returncode == 2
    assert refimpl("trace", fenced, "--top", "0").returncode == 2
