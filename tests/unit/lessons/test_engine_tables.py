"""The tables of the engine's page: figures as the files have them, and words where a file or a part is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

from refimpl.lessons import results
from refimpl.lessons.bench_engine import peers
from refimpl.lessons.bench_engine.added import added
from refimpl.lessons.bench_engine.bars import bars
from refimpl.lessons.bench_engine.engine_loops import engine_name
from refimpl.lessons.bench_engine.origin import Origin
from refimpl.lessons.engine_shortfalls import shortfalls
from refimpl.lessons.engine_tables import BENCH, LOSSLESS, TABLES, TRAINING, Missing, Table, table

ORIGIN = {"device": "NVIDIA H200", "driver": "580.159", "torch": "2.11.0", "command": "python -m refimpl bench engine"}
STEP = {
    "model": "small",
    "draft": "dflash",
    "batch": 16,
    "step_ms": 0.6,
    "forward_ms": 0.4,
    "host_ms": 0.55,
    "over_bound": 1.0909,
    "over_forward": 1.5,
    "idle_share": 0.25,
    "device_step_ms": 0.61,
}
LARGE_STEP = {**STEP, "model": "8b", "forward_ms": 5.0, "step_ms": 5.2, "over_forward": 1.04, "over_bound": 1.04}
ACCEPTED = {
    "model": "small",
    "draft": "eagle",
    "domain": "code",
    "accept_len": 3.1,
    "unique_8grams": 0.4,
    "histogram": [40, 30, 30],
    "verifies": 100,
}
LOOPS = [
    {"model": "small", "batch": 16, "loop": name, "tokens_per_s": rate, "step_ms": ms, "accept_len": 1.0}
    for name, rate, ms in (
        (engine_name("none"), 20_000.0, 0.5),
        (peers.GENERATE, 2_000.0, 6.0),
        (peers.BATCH_FITTED, 10_000.0, 1.4),
    )
]
DATA: dict[str, Any] = {
    "acceptance": [{**ACCEPTED, "temperature": heat} for heat in (0.0, 1.0)],
    "plain_steps": [
        {"model": "8b", "batch": 1, "bare_ms": 6.0, "products_ms": 4.0, "over_products": 1.5},
    ],
    "overlapped_steps": [STEP, LARGE_STEP],
    "batched": LOOPS,
    "left_out": ["8b: serving"],
    "failed": ["8b: alone: RuntimeError: out of memory"],
    "plan": {},
}
DATA["bars"] = [vars(bar) for bar in bars(DATA)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    results.write(BENCH, DATA, folder=tmp_path, **ORIGIN)
    return tmp_path


def made(name: str, folder: Path) -> Table:
    found = table(name, folder)
    assert isinstance(found, Table), found
    return found


@pytest.mark.parametrize("name", TABLES)
def test_a_file_that_is_missing_is_one_sentence_with_the_command_that_makes_it(name: str, tmp_path: Path) -> None:
    found = table(name, tmp_path)
    assert isinstance(found, Missing)
    assert "python -m refimpl" in found.words


@pytest.mark.parametrize("name", [name for name, (file, _) in TABLES.items() if file == BENCH])
def test_a_run_that_ended_before_a_part_gives_a_table_or_a_sentence(name: str, tmp_path: Path) -> None:
    results.write(BENCH, {"left_out": ["small: acceptance"], "failed": [], "bars": []}, folder=tmp_path, **ORIGIN)
    found = table(name, tmp_path)
    assert isinstance(found, Missing) or found.rows


def test_acceptance_stands_beside_how_much_the_text_repeats_itself(folder: Path) -> None:
    found = made("acceptance", folder)
    assert found.heads == ("draft", "text", "T = 0", "T = 1")
    assert found.rows == (("EAGLE-3", "code", "3.10 (0.40)", "3.10 (0.40)"),)
    assert found.numeric == {2, 3}


def test_a_figure_says_where_it_was_measured(folder: Path) -> None:
    (source,) = made("steps", folder).sources
    assert source.words.startswith("Measured on NVIDIA H200 (driver 580.159, torch 2.11.0), 2")
    assert source.command == ORIGIN["command"]


def test_figures_of_a_run_that_was_added_say_so(folder: Path) -> None:
    later = Origin(**{**ORIGIN, "date": "2031-02-03", "command": "python -m refimpl bench engine --add"})
    report = {"plan": {}, "overlapped_steps": [LARGE_STEP]}
    data = added(results.load(BENCH, folder), report, later)
    results.write(BENCH, data, folder=folder, **ORIGIN)
    first, second = made("steps", folder).sources
    assert first.words.endswith(", small")
    assert second.words == "Measured on NVIDIA H200 (driver 580.159, torch 2.11.0), 2031-02-03, 8b"
    assert second.command == later.command
    assert len(made("plain", folder).sources) == 1
    assert made("not measured", folder).sources[1].words.endswith(", 8b overlapped steps")


def test_a_run_that_measured_one_draft_anew_names_it(folder: Path) -> None:
    report = {"plan": {}, "overlapped_steps": [{**STEP, "draft": "mtp"}]}
    data = added(results.load(BENCH, folder), report, Origin(**ORIGIN, date="2031-02-03"))
    results.write(BENCH, data, folder=folder, **ORIGIN)
    first, second = made("steps", folder).sources
    assert first.words.endswith(", small dflash, 8b")
    assert second.words.endswith(", small mtp")


def test_a_step_stands_beside_the_calls_it_makes_and_the_speed_of_the_host(folder: Path) -> None:
    assert {row[6:8] for row in made("steps", folder).rows} == {("–", "–")}
    beside = {**STEP, "calls": {"operator": 30.0, "replay": 3.0}, "reference_us": 24.04}
    results.write(BENCH, {**DATA, "overlapped_steps": [beside]}, folder=folder, **ORIGIN)
    (row,) = made("steps", folder).rows
    assert row[6:8] == ("33", "24.0")


def test_host_work_that_falls_short_says_how_fast_the_host_was() -> None:
    rows = [
        {**STEP, "calls": {"operator": 40.0}, "reference_us": us, "batch": batch} for us, batch in ((48, 16), (20, 1))
    ]
    (why,) = [one.why for one in shortfalls({"overlapped_steps": rows}) if "host work" in one.bar.what]
    assert "The host makes 40 calls a step" in why
    assert "cost 48.0 µs beside this row, 2.40 times those of the fastest" in why


def test_every_bar_that_is_not_reached_has_a_row_and_no_other(folder: Path) -> None:
    missed = {bar["what"] for bar in DATA["bars"] if not bar["reached"]}
    found = made("shortfalls", folder)
    assert {row[0] for row in found.rows} == missed
    assert found.lead == f"{len(DATA['bars']) - len(missed)} of {len(DATA['bars'])} figures reach the bar set for them."


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("8b, batch 1: plain step over the matrix products alone", "The graph takes 6.000 ms"),
        ("8b, dflash, batch 16: overlapped step over its forward work", "do not overlap completely"),
        ("8b, dflash, batch 16: share of a step in which the GPU idles", "nothing to do for 0.152 ms"),
        ("small, dflash, batch 16: step over the longer of host and forward", "so the host sets the pace"),
        ("small, dflash, batch 16: host work a step, ms", "longer than the forward's 0.400 ms"),
        ("small, eagle, code, T=0: tokens a verify", "In 40% of 100 verifies"),
        ("small, eagle, code, T=0: unique 8-grams", "repeats itself"),
    ],
)
def test_what_the_run_says_of_a_shortfall_has_the_figures_of_its_row(what: str, says: str) -> None:
    (why,) = [one.why for one in shortfalls(DATA) if one.bar.what == what]
    assert says in why


def test_a_comparison_that_falls_short_names_its_two_loops_alone() -> None:
    (why,) = [one.why for one in shortfalls(DATA) if one.bar.what.endswith(peers.BATCH_FITTED)]
    assert why == (f"A step of {engine_name('none')} takes 0.50 ms. A step of {peers.BATCH_FITTED} takes 1.40 ms.")


def test_a_run_that_reaches_everything_says_so_without_rows(tmp_path: Path) -> None:
    good = {**STEP, "host_ms": 0.3, "over_bound": 1.02}
    held = [vars(bar) for bar in bars({"overlapped_steps": [good]})]
    results.write(BENCH, {"overlapped_steps": [good], "bars": held}, folder=tmp_path, **ORIGIN)
    assert made("shortfalls", tmp_path).rows == ()
    assert made("shortfalls", tmp_path).lead == "2 of 2 figures reach the bar set for them."


def test_what_was_not_measured_says_why(folder: Path) -> None:
    assert made("not measured", folder).rows == (
        ("8b: serving", "the run's time was over"),
        ("8b: alone", "it failed: RuntimeError: out of memory"),
    )


def test_a_worker_has_one_row_over_all_its_variants(tmp_path: Path) -> None:
    row = {"worker": "eagle", "runs": 10, "requests": 80, "tokens": 900, "near_ties": 1, "wrong": 0}
    rows = [{**row, "variant": "overlap"}, {**row, "variant": "normal"}]
    results.write(LOSSLESS, {"rows": rows}, folder=tmp_path, **ORIGIN)
    assert made("lossless", tmp_path).rows == (("eagle", "2", "20", "160", "1,800", "2", "0"),)


def test_the_committed_results_make_tables_or_say_what_is_missing() -> None:
    assert isinstance(table("models"), Table)
    assert all(table(name) for name in TABLES)


def test_the_models_are_those_of_the_last_run_that_trained_each() -> None:
    rows = json.loads(results.file_of(TRAINING).read_text(encoding="utf-8"))["models"]
    shown = {cell for row in made("models", results.FOLDER).rows for cell in row[1:]}
    last = {(row["size"], row["model"]): f"{row['parameters']:,}" for row in rows}
    assert shown == set(last.values())
