"""`presets`, `run` and `history` as processes."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace

import pytest

from refimpl.commands.history import _table, kept
from refimpl.commands.overwriting import refuse_other_machine
from refimpl.fences import history
from refimpl.lessons.history.presets import Plan
from refimpl.lessons.provenance import Machine
from refimpl.lessons.results import Result
from refimpl.program.errors import UserError

Command = Callable[..., subprocess.CompletedProcess[str]]
ROW = {
    "date": "2026-07-01",
    "expect": "right",
    "agrees": True,
    "device": "sim",
    "runs": 1,
    "races": [],
    **dict.fromkeys(("wrong_runs", "unmasked_wrong_runs", "accept_len", "control_accept_len"), 0),
}
"""Of a result, as far as the table for people shows it."""


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
    for words in (("--runs", "0"), ("--runs", "1000000000"), ("--workers", "0"), ("--models", "huge")):
        done = refimpl("run", "--preset", "latest", "--device", "sim", *words)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert words[1] in done.stderr


def test_the_fewer_runs_are_those_of_presets_with_a_race(refimpl: Command) -> None:
    words = ("--device", "sim", "--runs", "2", "--racy-runs", "1", "--workers", "1", "--json")
    rows = json.loads(refimpl("history", "--only", "latest,no-barrier", *words).stdout)["rows"]
    assert {row["preset"]: row["runs"] for row in rows} == {"latest": 2, "no-barrier": 1}


def test_a_profile_is_refused_in_one_sentence_where_it_cannot_be_made(refimpl: Command) -> None:
    for words, says in (
        (("--preset", "nope"), "'nope'"),
        (("--preset", "latest", "--steps", "0"), "--steps 0"),
        (("--preset", "latest", "-o", "trace.txt"), ".json.gz"),
        (("--preset", "28363"), "only eagle and dflash"),
    ):
        done = refimpl("profile", *words)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert says in done.stderr


def test_a_preset_that_is_named_twice_runs_once(refimpl: Command) -> None:
    words = ("--device", "sim", "--runs", "1", "--workers", "1", "--json")
    row, *others = json.loads(refimpl("history", "--only", "latest, latest", *words).stdout)["rows"]
    assert (row["runs"], others) == (1, [])


@pytest.mark.parametrize(
    ("command", "data", "says"),
    [
        ("python -m refimpl bench sim", {}, "the result of `python -m refimpl bench sim`"),
        ("python -m refimpl history", {"runs": 1}, "damaged"),
        ("python -m refimpl history", {"runs": 1, "models": "tiny", "rows": [{"preset": "latest"}]}, "damaged"),
        ("python -m refimpl history", {"runs": 2, "models": "tiny", "rows": []}, "ask for the same"),
    ],
)
def test_a_result_that_cannot_be_gone_on_with_is_refused_in_one_sentence(
    command: str, data: dict[str, object], says: str
) -> None:
    cut = Result("cut", "the simulated device", "", "2.13.0", "2026-11-30", command, data)
    with pytest.raises(UserError, match=says):
        kept(cut, "sim", Plan("sim", "tiny", runs=1))


def test_rows_of_which_the_table_says_other_now_are_run_again() -> None:
    rows = [
        {**ROW, "preset": "latest", "expect": "racy-masked"},
        {**ROW, "preset": "gone"},
        {**ROW, "preset": "coarse"},
    ]
    data = {"runs": 1, "models": "tiny", "rows": rows}
    cut = Result("cut", "the simulated device", "", "2.13.0", "2026-11-30", "python -m refimpl history", data)
    assert [row["preset"] for row in kept(cut, "sim", Plan("sim", "tiny", runs=1))] == ["coarse"]


def test_presets_with_a_race_may_run_less_often_and_a_campaign_goes_on_as_it_began() -> None:
    rows = [{**ROW, "preset": "before-35748", "expect": "racy-harmful", "runs": 2}, {**ROW, "preset": "coarse"}]
    data = {"runs": 1, "racy_runs": 2, "models": "tiny", "rows": rows}
    cut = Result("cut", "the simulated device", "", "2.13.0", "2026-11-30", "python -m refimpl history", data)
    assert len(kept(cut, "sim", Plan("sim", "tiny", runs=1, racy_runs=2))) == 2
    for plan in (Plan("sim", "tiny", runs=1), Plan("sim", "tiny", runs=1, racy_runs=3)):
        with pytest.raises(UserError, match="2 of presets with a race"):
            kept(cut, "sim", plan)


def test_a_campaign_does_not_go_on_on_another_machine() -> None:
    cut = Result("cut", "NVIDIA H200", "580", "2.11.0", "2026-11-30", "python -m refimpl history", {})
    same = Machine("cuda", "NVIDIA H200", "580", "2.11.0", "3.11", "2026-12-01")
    refuse_other_machine(cut, same)
    for other in (replace(same, device="NVIDIA B200"), replace(same, driver="590"), replace(same, torch="2.12.0")):
        with pytest.raises(UserError, match="cut was made on NVIDIA H200"):
            refuse_other_machine(cut, other)


def test_faults_have_a_column_where_there_are_any() -> None:
    row = {**ROW, "preset": "25917-revert"}
    assert "faults" not in _table([row])
    assert "faults" in _table([row, {**row, "faults": 3}]).splitlines()[0]


def test_a_run_of_one_preset_does_not_take_the_place_of_a_campaign(refimpl: Command) -> None:
    done = refimpl("history", "--device", "sim", "--runs", "1", "--only", "latest", "--save", "history_h200")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "would lose" in done.stderr
    assert "--resume" in done.stderr
