"""The table of the whole history: what was found stands beside what was expected, and what is missing is told."""

from pathlib import Path
from typing import Any

import pytest

from refimpl.fences import Expect, history, preset
from refimpl.lessons import results, whole_history, whole_history_costs
from refimpl.lessons.whole_history_pictures import dates_picture, held_picture


def row(name: str, **more: Any) -> dict[str, Any]:
    return {
        "preset": name,
        "expect": str(preset(name).expect),
        "device": "sim",
        "agrees": True,
        "runs": 1000,
        "wrong_runs": 0,
        "accepts_less_runs": 0,
        "faults": 0,
        "unmasked_wrong_runs": 0,
        "accept_len": 1.9,
        "races": [],
        "host_blocked_us": {"before_launch": 40.0, "after_launch": 2.0},
        "step_us": 300.0,
        "gpu_idle": 0.25,
        **more,
    }


WAR = {"kind": "WAR", "buffer": "req_to_token of turn 3", "count": 2, "example": ""}


def written(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    data = {"runs": 1000, "models": "tiny", "rows": list(rows)}
    results.write(name, data, device="some device", driver="1", torch="2", command="a command", folder=folder)


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({}, Expect.RIGHT),
        ({"races": [WAR], "unmasked_wrong_runs": 3}, Expect.RACY_MASKED),
        ({"races": [WAR], "wrong_runs": 1}, Expect.RACY_HARMFUL),
        ({"races": [WAR], "accepts_less_runs": 1}, Expect.RACY_HARMFUL),
        ({"races": [WAR]}, whole_history.RACY),
        ({"unmasked_wrong_runs": 1}, Expect.RACY_HARMFUL),
    ],
)
def test_a_verdict_follows_from_races_and_runs(more: dict[str, Any], verdict: str) -> None:
    assert whole_history.found(row("29556", **more)) == verdict


def test_without_results_every_row_says_not_measured_and_the_commands_are_named(tmp_path: Path) -> None:
    said = whole_history.table(whole_history.moments(), tmp_path)
    assert said.count(whole_history.NOT_MEASURED) == 2 * len(whole_history.moments())
    assert all(command in said for command in whole_history.COMMANDS.values())
    assert whole_history.quiet(tmp_path) == []
    assert whole_history.differing(tmp_path) == {whole_history.SIM: (), whole_history.GPU: ()}


def test_rows_that_a_run_lacks_are_counted_and_a_few_of_them_named(tmp_path: Path) -> None:
    written(tmp_path, whole_history.SIM, row("29556"))
    said = whole_history.provenance(whole_history.SIM, tmp_path)
    assert f"It lacks {len(history()) - 1} of {len(history())} rows." in said
    assert "some device (driver 1, torch 2)" in said
    written(tmp_path, whole_history.SIM, *(row(one.name) for one in history() if one.name != "35748"))
    assert f"It lacks 1 of {len(history())} rows: 35748." in whole_history.provenance(whole_history.SIM, tmp_path)


def test_a_row_that_is_not_as_expected_is_bold_and_counted(tmp_path: Path) -> None:
    written(tmp_path, whole_history.GPU, row("29556", wrong_runs=7, agrees=False))
    (line,) = [line for line in whole_history.table([preset("29556")], tmp_path).splitlines() if "`29556`" in line]
    assert "**racy-harmful: 7 / 0 of 1000**" in line
    assert whole_history.differing(tmp_path)[whole_history.GPU] == ("29556",)


def test_a_race_that_no_run_showed_differs_and_a_wrong_token_refutes(tmp_path: Path) -> None:
    unseen = row("29843", races=[WAR], agrees=False)
    spoilt = row("29541", wrong_runs=1, agrees=False)
    harmful = row("25465", races=[WAR], wrong_runs=1, agrees=False)
    written(tmp_path, whole_history.GPU, unseen, spoilt, harmful, row("before-35748", agrees=False))
    assert whole_history.differing(tmp_path)[whole_history.GPU] == ("29843", "29541", "25465", "before-35748")
    assert whole_history.refuted(tmp_path)[whole_history.GPU] == ("29541", "25465")


def test_rows_that_runs_of_the_text_do_not_show_are_listed(tmp_path: Path) -> None:
    masked = row("29843", races=[WAR], unmasked_wrong_runs=141)
    written(tmp_path, whole_history.SIM, masked, row("29541"), row("before-35748", races=[WAR], wrong_runs=9))
    (quiet,) = whole_history.quiet(tmp_path)
    assert (quiet["preset"], quiet["wrong text"], quiet["races"]) == ("29843", "0 of 1000", "WAR on req_to_token")


def test_a_row_that_the_first_run_lacks_is_taken_from_the_other(tmp_path: Path) -> None:
    written(tmp_path, whole_history.SIM, row("29843", races=[WAR], unmasked_wrong_runs=141))
    written(tmp_path, whole_history.GPU, row("29843", races=[WAR]), row("25465", races=[WAR], device="cuda"))
    assert [(one["preset"], one["on"]) for one in whole_history.quiet(tmp_path)] == [
        ("25465", "cuda"),
        ("29843", "sim"),
    ]


def test_what_the_chapter_says_of_the_moments_is_so() -> None:
    moments = whole_history.moments()
    right, masked = ([one for one in moments if one.expect is kind] for kind in (Expect.RIGHT, Expect.RACY_MASKED))
    racy = len(moments) - len(right)
    assert 2 * len(right) < len(moments)
    assert 2 * len(masked) > racy
    assert sorted(moments, key=lambda one: one.date) == list(moments)
    assert len(moments) + len(whole_history.experiments()) == len(history())


def test_corrected_rows_are_told_with_their_sentences() -> None:
    for one in history():
        assert (f"- `{one.name}`:" in whole_history.corrections()) == bool(one.corrected)


def test_costs_stand_by_device_and_a_dash_where_nothing_was_measured(tmp_path: Path) -> None:
    fault = row("before-35748", step_us=None, gpu_idle=None, host_blocked_us={"before_launch": None})
    written(tmp_path, whole_history.SIM, row("29556"), fault)
    said = whole_history_costs.table([preset("29556"), preset("before-35748")], tmp_path).splitlines()
    assert "| 0.040 + 0.002 of 0.300, 25% idle | – | – |" in said[2]
    assert "| – | – | – |" in said[3]
    steps, device = whole_history_costs.complete_steps(tmp_path)
    assert (list(steps), device) == (["29556"], "some device")
    assert whole_history_costs.large_complete([preset("29556")], tmp_path) == ({}, "not measured")
    assert "idle unclear" in str(whole_history_costs.Step(0.0, 0.0, 1.0, 1.13))


def test_pictures_say_in_words_what_they_show(tmp_path: Path) -> None:
    presets = [preset("29556"), preset("29843")]
    written(tmp_path, whole_history.SIM, row("29843", races=[WAR], unmasked_wrong_runs=1))
    dates = dates_picture(presets, whole_history.saved(whole_history.SIM, tmp_path))
    assert "2026-06-28: 29556 right; 2026-07-01: 29843 racy-masked" in dates.alt
    held = held_picture(presets, *whole_history_costs.complete_steps(tmp_path))
    assert held is not None
    assert "29843: 0.040 + 0.002 of 0.300, 25% idle" in held.alt
    assert held_picture(presets, {}, "no device") is None
