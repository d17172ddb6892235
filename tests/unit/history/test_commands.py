"""`presets`, `run` and `history` as processes."""

import json
import subprocess
from collections.abc import Callable

from refimpl.fences import history

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_presets_are_listed_by_date_and_experiments_if_asked_for(refimpl: Command) -> None:
    listed = json.loads(refimpl("presets", "--json").stdout)
    assert [row["name"] for row in listed] == [one.name for one in history() if not one.experiment]
    assert [row["date"] for row in listed] == sorted(row["date"] for row in listed)
    assert all(set(row) >= {"name", "pr", "date", "expect", "masked_by"} for row in listed)
    assert all(bool(row["masked_by"]) == (row["expect"] == "racy-masked") for row in listed)
    assert len(json.loads(refimpl("presets", "--json", "--all").stdout)) == len(history())


def test_the_table_for_people_has_a_line_for_each_preset(refimpl: Command) -> None:
    lines = refimpl("presets").stdout.splitlines()
    for one in history():
        assert any(line.split()[:2] == [one.date, one.name] for line in lines) != one.experiment


def test_a_run_says_what_came_of_it_and_that_it_is_as_expected(refimpl: Command) -> None:
    done = refimpl("run", "--preset", "one-at-a-time", "--models", "tiny", "--runs", "2", "--device", "sim", "--json")
    row = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert (row["preset"], row["device"], row["runs"], row["wrong_runs"]) == ("one-at-a-time", "sim", 2, 0)
    assert row["races"] == []
    assert row["host_blocked_us"]["before_launch"] == 0
    assert row["host_blocked_us"]["after_launch"] > 0
    assert row["step_us"] > 0
    assert 0 < row["gpu_idle"] < 1


def test_an_unknown_preset_is_refused_in_one_sentence_that_lists_them(refimpl: Command) -> None:
    for words in (("run", "--preset", "nope"), ("history", "--only", "nope")):
        done = refimpl(*words)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert "'nope'" in done.stderr
        assert "before-21940, " in done.stderr


def test_bad_numbers_are_refused_before_anything_runs(refimpl: Command) -> None:
    for words in (("--runs", "0"), ("--workers", "0"), ("--models", "huge")):
        done = refimpl("run", "--preset", "latest", "--device", "sim", *words)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert words[1] in done.stderr
