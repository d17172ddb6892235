"""The table of the whole history: what was found stands beside what was expected, and what is missing is told."""

from pathlib import Path
from typing import Any

import pytest

from refimpl.fences import Expect, history, preset
from refimpl.lessons import results, whole_history, whole_history_costs
from refimpl.lessons.lines import WIDTH
from refimpl.lessons.whole_history_pictures import dates_picture, held_picture
from refimpl.lessons.whole_history_table import table


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
    said = table(whole_history.moments(), tmp_path)
    assert said.count("| – |") == len(whole_history.moments())
    assert all(command in said for command in whole_history.COMMANDS.values())
    assert whole_history.quiet(tmp_path) == []
    assert whole_history.differing(tmp_path) == {whole_history.SIM: (), whole_history.GPU: ()}


def test_rows_that_a_run_lacks_are_counted_and_a_few_of_them_named(tmp_path: Path) -> None:
    written(tmp_path, whole_history.SIM, row("29556"))
    said = whole_history.provenance(whole_history.SIM, tmp_path)
    assert f"It lacks {len(history()) - 1} of {len(history())} rows." in said
    assert "Some device (driver 1, torch 2)" in said
    written(tmp_path, whole_history.SIM, *(row(one.name) for one in history() if one.name != "35748"))
    assert f"It lacks 1 of {len(history())} rows: 35748." in whole_history.provenance(whole_history.SIM, tmp_path)


def test_a_row_that_is_not_as_expected_is_bold_and_counted(tmp_path: Path) -> None:
    written(tmp_path, whole_history.GPU, row("29556", wrong_runs=7, agrees=False))
    said = table([preset("29556")], tmp_path)
    assert "| right | **7** | **0** |" in said
    assert "Not as expected (bold): `29556` is racy-harmful on GPU." in said
    assert whole_history.differing(tmp_path)[whole_history.GPU] == ("29556",)


def test_counts_stand_in_columns_and_a_row_that_was_given_up_says_of_how_many_runs(tmp_path: Path) -> None:
    given_up = row("25917-revert", runs=9, wrong_runs=9, faults=8, unmasked_wrong_runs=1, races=[WAR], accept_len=None)
    written(tmp_path, whole_history.GPU, given_up, row("29843", unmasked_wrong_runs=25, races=[WAR]), row("29556"))
    said = table([preset("25917-revert"), preset("29843"), preset("29556"), preset("35748")], tmp_path)
    assert said.splitlines()[0] == "| preset | expected | GPU, wrong | GPU, faults | GPU, dropped too | accepts |"
    assert "| racy-harmful | 9 of 9 | 8 of 9 | 1 of 9 | – |" in said
    assert "| racy-masked (?) | 0 | 0 | 25 | 1.90 |" in said
    assert "| right | – | – | – | – |" in said
    assert "- WAR on req_to_token: `25917-revert`, `29843`\n- none: `29556`\n" in said


def test_rows_that_accept_less_than_their_control_are_named_below_the_table(tmp_path: Path) -> None:
    written(tmp_path, whole_history.GPU, row("before-35748", races=[WAR], accepts_less_runs=4), row("35748"))
    (told,) = [
        line for line in table([preset("before-35748"), preset("35748")], tmp_path).splitlines() if "less" in line
    ]
    assert told.endswith("with the same requests: `before-35748` in 4.")


def test_a_campaign_with_fewer_runs_of_racy_presets_is_not_one_that_gave_them_up(tmp_path: Path) -> None:
    data = {"runs": 1000, "racy_runs": 100, "models": "tiny", "rows": [row("29843", runs=100), row("29556", runs=7)]}
    results.write(whole_history.SIM, data, device="d", driver="", torch="2", command="c", folder=tmp_path)
    said = table([preset("29843"), preset("29556")], tmp_path)
    assert "| racy-masked (?) | 0 | 0 |" in said
    assert "| right | 0 of 7 | 0 of 7 |" in said


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


def test_below_the_quiet_rows_stands_where_those_runs_were_made_and_no_others(tmp_path: Path) -> None:
    written(tmp_path, whole_history.SIM, row("29541"))
    written(tmp_path, whole_history.GPU, row("29843", races=[WAR], device="cuda"), row("29541", device="cuda"))
    lines = whole_history.quiet_text(["29843", "29556-hip"], tmp_path)
    said = " ".join(lines.split())
    assert "\n  WAR on req_to_token: 29843\n" in lines
    assert max(map(len, lines.splitlines())) <= WIDTH
    assert "`" not in said
    assert "29843" in said
    assert said.count("Some device") == 1
    assert f"It lacks {len(history()) - 2} of" in said
    assert whole_history.quiet_text(["29556"], tmp_path) == "Not measured in this version."


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
    assert "| 0.040 | 0.002 | 0.300 | 25% |" in "\n".join(said)
    assert not any("before-35748" in line for line in said)
    assert any(line.startswith("1 of 2 rows were not timed.") for line in said)
    steps, device = whole_history_costs.complete_steps(tmp_path)
    assert (list(steps), device) == (["29556"], "some device")
    assert whole_history_costs.large_complete([preset("29556")], tmp_path) == ({}, "not measured")
    assert whole_history_costs.Step(0.0, 0.0, 1.0, 1.13).cells[-1] == "unclear"


def test_steps_of_tiny_weights_on_a_gpu_are_not_told(tmp_path: Path) -> None:
    written(tmp_path, whole_history.GPU, row("29556", step_us=987000.0))
    assert "987" not in whole_history_costs.table([preset("29556")], tmp_path)
    assert whole_history_costs.complete_steps(tmp_path) == ({}, "not measured")


def test_pictures_say_in_words_what_they_show(tmp_path: Path) -> None:
    presets = [preset("29556"), preset("29843")]
    written(tmp_path, whole_history.SIM, row("29843", races=[WAR], unmasked_wrong_runs=1))
    dates = dates_picture(presets, whole_history.saved(whole_history.SIM, tmp_path))
    assert "2026-06-28: 29556 right; 2026-07-01: 29843 racy-masked" in dates.alt
    held = held_picture(presets, *whole_history_costs.complete_steps(tmp_path))
    assert held is not None
    assert "29843: 0.040 before and 0.002 after, of 0.300" in held.alt
    assert held_picture(presets, {}, "no device") is None
