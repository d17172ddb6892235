"""A run that is added to a saved one: what it replaces, what it leaves, and what it is refused for."""

from pathlib import Path
from typing import Any

import pytest

from refimpl.lessons import results
from refimpl.lessons.bench_engine.added import added, origins
from refimpl.lessons.bench_engine.origin import Origin
from refimpl.lessons.results import Result
from refimpl.program.errors import UserError

FIRST = Origin("NVIDIA H200", "580.1", "2.11.0", "2026-11-30", "python -m refimpl bench engine")
LATER = Origin("NVIDIA H200", "580.2", "2.11.0", "2026-12-01", "python -m refimpl bench engine --only serving --add")
STEPS = [{"model": model, "batch": 1, "over_products": 1.1} for model in ("small", "8b")]
DATA: dict[str, Any] = {
    "plan": {"small": {"rounds": 2}},
    "bandwidth": [{"tb_per_s": 4.2}],
    "plain_steps": STEPS,
    "serving": [{"model": "small", "draft": "dflash", "steps": 1}],
    "bars": [],
    "left_out": ["8b: serving", "8b: alone"],
    "failed": ["8b: batched: RuntimeError: no: room"],
}
SERVED = {"model": "8b", "draft": "dflash", "steps": 2}


def saved(data: dict[str, Any] = DATA) -> Result:
    return Result("bench", **vars(FIRST), data=data)


def report(**parts: Any) -> dict[str, Any]:
    return {"plan": {"8b": {"rounds": 1}}, "bars": [], "left_out": [], "failed": [], **parts}


def test_a_part_that_was_left_out_joins_what_was_measured() -> None:
    data = added(saved(), report(serving=[SERVED]), LATER)
    assert data["serving"] == [*DATA["serving"], SERVED]
    assert data["plain_steps"] == STEPS
    assert data["bandwidth"] == DATA["bandwidth"]
    assert data["left_out"] == ["8b: alone"]
    assert data["failed"] == DATA["failed"]
    assert data["plan"] == DATA["plan"]


def test_what_is_measured_anew_replaces_all_rows_of_its_weights_and_draft() -> None:
    rows = [{"model": "small", "draft": "dflash", "steps": steps} for steps in (5, 6)]
    data = added(saved(), report(serving=rows), LATER)
    assert data["serving"] == rows


def test_each_row_is_known_to_be_of_its_run() -> None:
    data = added(saved(), report(serving=[SERVED]), LATER)
    both = origins(saved(data), "serving")
    assert both == {FIRST: [("serving", "small", "dflash")], LATER: [("serving", "8b", "dflash")]}
    assert origins(saved(data), "plain_steps") == {FIRST: [("plain_steps", "small", ""), ("plain_steps", "8b", "")]}


def test_a_third_run_takes_the_place_of_the_second() -> None:
    third = Origin(**{**vars(LATER), "date": "2026-12-02"})
    data = added(saved(added(saved(), report(serving=[SERVED]), LATER)), report(serving=[SERVED]), third)
    assert [entry["date"] for entry in data["added"]] == ["2026-12-02"]
    assert data["added"][0]["plan"] == {"8b": {"rounds": 1}}


def test_the_bars_are_those_of_all_rows_together() -> None:
    data = added(saved(), report(plain_steps=[{"model": "8b", "batch": 1, "over_products": 1.3}]), LATER)
    assert [(bar["measured"], bar["reached"]) for bar in data["bars"]] == [(1.3, False)]


def test_what_the_later_run_lacks_is_not_told_where_the_file_has_it() -> None:
    lacking = report(left_out=["small: serving", "8b: overlapped_steps"], failed=["8b: plain_steps: OSError: x"])
    data = added(saved(), lacking, LATER)
    assert data["left_out"] == ["8b: serving", "8b: alone", "8b: overlapped_steps"]
    assert data["failed"] == DATA["failed"]
    assert data["added"] == []


def test_figures_of_another_device_are_refused(tmp_path: Path) -> None:
    other = Origin(**{**vars(LATER), "device": "NVIDIA H100"})
    with pytest.raises(UserError, match="measured on NVIDIA H200, and this is NVIDIA H100: save the run under another"):
        added(saved(), report(serving=[SERVED]), other)


def test_the_file_keeps_its_first_date(tmp_path: Path) -> None:
    results.write("bench", added(saved(), report(serving=[SERVED]), LATER), folder=tmp_path, **vars(FIRST))
    assert Origin.of(vars(results.load("bench", tmp_path))) == FIRST
