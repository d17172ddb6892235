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
    assert "*Hidden in `before-29556`, `self-fence-wait`:* the two blocks of reserve" in shown
    assert "*Corrected in `plan-repaired-wait`" in shown
    assert "(our inference)" in shown
    assert ".." not in shown


def test_an_unknown_preset_is_one_sentence() -> None:
    with pytest.raises(UserError, match="unknown preset 'x'"):
        expected(["x"])


def test_runs_are_counted_beside_the_races_and_the_time_of_a_step() -> None:
    row = " ".join(found([OUTCOME]).splitlines()[1].split())
    assert row == "before-29556 racy-masked 0 of 2 1 of 2 2.00 (2.00) WAR on req_to_token 79 1 343 yes"


def test_a_row_names_few_hazards_and_none_twice() -> None:
    buffers = ("seq_lens of turn 1", "seq_lens of turn 2", "results 0", "req_to_token", "full_to_swa")
    many = replace(OUTCOME, races=tuple(Found("RAW", buffer, 1, "…") for buffer in buffers))
    assert "RAW on seq_lens, RAW on results, RAW on req_to_token, 1 more " in found([many])


def test_what_no_run_reached_is_left_blank() -> None:
    assert "unknown" in found([replace(OUTCOME, ran=(replace(RAN, fault="x", verifies=0),), cost=None)])


def test_campaigns_stand_side_by_side_and_each_says_where_it_ran(tmp_path: Path) -> None:
    assert committed(["29556"], tmp_path) == "No campaign is committed in this version."
    save(tmp_path, "history_sim", [{"preset": "29556", "runs": 1000, "wrong_runs": 0, "unmasked_wrong_runs": 7}])
    save(tmp_path, "history_h200", [])
    shown = committed(["29556", "no-barrier"], tmp_path)
    assert "| `29556` | 0 of 1,000 | 7 of 1,000 | – | – |" in shown
    assert "no-barrier" not in shown
    assert "Ran on history_h200" in shown
