"""Presets as chapters show them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refimpl.fences import preset
from refimpl.lessons import results
from refimpl.lessons.history.outcome import Outcome
from refimpl.lessons.history.recorded import Found
from refimpl.lessons.history.runner import Ran
from refimpl.lessons.history.shown import committed, expected, found
from refimpl.lessons.history.timed import Cost
from refimpl.lessons.lines import WIDTH
from refimpl.program import UserError

RAN = Ran(0, verifies=2, emitted=4)
OUTCOME = Outcome(
    preset=preset("before-29556"),
    device="sim",
    models="tiny",
    ran=(RAN, replace(RAN, seed=1, unmasked=("request 0: wrong",))),
    control=(RAN,),
    races=(Found("WAR", "req_to_token", 1, "…"),),
    cost=Cost(6, 79.2, 0.8, 343.2, 0.1),
)


def save(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    results.write(name, {"rows": rows}, device=name, driver="", torch="2.11.0", command="history", folder=folder)


def test_the_table_says_what_hides_a_race_once_and_which_row_was_corrected() -> None:
    shown = expected(["before-29556", "self-fence-wait", "29556", "plan-repaired-wait"])
    assert shown.count("| `") == 4
    assert shown.count("\n- `") == 4
    assert "*Hidden in `before-29556`, `self-fence-wait`:* the two blocks of reserve" in shown
    assert "*Corrected in `plan-repaired-wait`" in shown
    assert "(our inference)" in shown
    assert ".." not in shown


def test_a_table_of_presets_has_few_columns_and_the_reasons_stand_below_it() -> None:
    table, *below = expected(["before-21940", "plan-event"]).split("\n\n")
    assert table.splitlines()[0] == "| preset | barrier | event | expected |"
    reasons = "\n".join(below)
    assert preset("before-21940").why not in table
    assert preset("before-21940").why in reasons
    assert (
        "- `plan-event` ([21940](https://github.com/sgl-project/sglang/pull/21940), 2026-08-21, experiment):" in reasons
    )


def test_an_unknown_preset_is_one_sentence() -> None:
    with pytest.raises(UserError, match="unknown preset 'x'"):
        expected(["x"])


def test_runs_are_counted_in_one_table_a_step_is_timed_in_another_and_the_races_stand_below() -> None:
    counts, times, races, _ = found([OUTCOME, replace(OUTCOME, preset=preset("29556"), races=())]).split("\n\n")
    assert " ".join(counts.splitlines()[1].split()) == "before-29556 racy-masked yes 0 of 2 1 of 2 2.00 (2.00)"
    assert " ".join(times.splitlines()[1].split()) == "before-29556 79 1 343"
    assert races == "Races in a recorded run:\n  before-29556: WAR on req_to_token"
    assert "Races in a recorded run: none" in found([replace(OUTCOME, races=())])


def test_what_came_of_presets_fits_the_page() -> None:
    buffers = ("draft.draft_tokens", "bonus_tokens", "draft_extend.page_table", "req_to_token")
    races = tuple(Found("RAW", buffer, 1, "…") for buffer in buffers)
    many = replace(OUTCOME, ran=(RAN,) * 40, races=races)
    faulty = replace(many, preset=preset("dflash-synchronize"), ran=(replace(RAN, fault="x"), *many.ran[1:]))
    for one in (replace(many, preset=preset("plan-repaired-extend")), faulty):
        assert max(map(len, found([one]).splitlines())) <= WIDTH


def test_a_row_names_few_hazards_and_none_twice() -> None:
    buffers = ("seq_lens of turn 1", "seq_lens of turn 2", "results 0", "req_to_token", "full_to_swa")
    many = replace(OUTCOME, races=tuple(Found("RAW", buffer, 1, "…") for buffer in buffers))
    assert "RAW on seq_lens, RAW on results, RAW on req_to_token and 1 more" in " ".join(found([many]).split())


def test_memory_without_a_name_is_told_in_words() -> None:
    shown = found([replace(OUTCOME, races=(Found("RAW", "memory4", 1, "…"),))])
    assert "RAW on unnamed memory of a step" in shown
    assert "memory4" not in shown


def test_faults_have_a_column_where_there_are_any_and_the_legend_says_that_they_count_as_wrong() -> None:
    faulty = replace(OUTCOME, ran=(replace(RAN, fault="IndexError"), RAN))
    head, _, second = found([OUTCOME, faulty]).splitlines()[:3]
    assert "  wrong   faults  with dropped  " in head
    assert " ".join(second.split()).startswith("before-29556 racy-masked NO 1 of 2 1 0 of 2")
    assert "or that ended in a fault" in " ".join(found([OUTCOME, faulty]).split())
    assert "faults" not in found([OUTCOME]).splitlines()[0]


def test_the_legend_says_what_a_step_is_and_what_dropped_means_behind_a_repair() -> None:
    plain, repaired = (
        " ".join(found([replace(OUTCOME, preset=preset(name))]).split()) for name in ("29556", "plan-repaired")
    )
    assert "Step: µs" in plain
    assert "repair left out" not in plain
    assert "of plan-repaired: runs made again with the repair left out" in repaired


def test_what_no_run_reached_is_a_dash_and_the_legend_says_so() -> None:
    given_up = found([replace(OUTCOME, ran=(replace(RAN, fault="x", verifies=0),), cost=None)])
    assert "– (2.00)" in given_up
    assert "–: every run ended in a fault" in " ".join(given_up.split())


def test_times_stand_where_a_run_got_that_far_with_what_they_are_not_good_for() -> None:
    untimed = replace(OUTCOME, preset=preset("29556"), cost=None)
    counts, times, *_ = found([OUTCOME, untimed]).split("\n\n")
    assert "29556 " in counts.splitlines()[2]
    assert [line.split()[0] for line in times.splitlines()] == ["preset", "before-29556"]
    assert "judge no fence by held and step" in " ".join(found([OUTCOME]).split())
    assert "step" not in found([untimed]).lower()


def test_campaigns_stand_side_by_side_and_each_says_where_it_ran(tmp_path: Path) -> None:
    assert committed(["29556"], tmp_path) == "No campaign is committed in this version."
    save(tmp_path, "history_sim", [{"preset": "29556", "runs": 1000, "wrong_runs": 0, "unmasked_wrong_runs": 7}])
    save(tmp_path, "history_h200", [])
    shown = committed(["29556", "no-barrier"], tmp_path)
    assert "| `29556` | 0 of 1,000 | 7 of 1,000 | – | – |" in shown
    assert "no-barrier" not in shown
    assert "faults" not in shown.splitlines()[0]
    assert "Ran on history_h200" in shown


def test_faults_of_a_campaign_stand_in_a_column_of_their_own(tmp_path: Path) -> None:
    row = {"preset": "25917-revert", "runs": 9, "wrong_runs": 9, "faults": 8, "unmasked_wrong_runs": 1}
    save(tmp_path, "history_h200", [row])
    assert "| `25917-revert` | 9 of 9 | 8 of 9 | 1 of 9 |" in committed(["25917-revert"], tmp_path)


def test_a_long_list_of_names_is_left_out_of_a_line_of_provenance(tmp_path: Path) -> None:
    names = ",".join(["29556"] * 30)
    rows = {"rows": [{"preset": "29556", "runs": 1, "wrong_runs": 0, "unmasked_wrong_runs": 0}]}
    command = f"history --only {names} --runs 1"
    results.write("history_sim", rows, device="sim", driver="", torch="2", command=command, folder=tmp_path)
    assert "`history --only … --runs 1`" in committed(["29556"], tmp_path)
