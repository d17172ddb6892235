from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from refimpl.lessons import results
from refimpl.lessons.history_timing import live
from refimpl.lessons.history_timing.cases import COARSE, DFLASH, LATEST, PARTS, Case, Pair
from refimpl.lessons.history_timing.pictures import blocked_picture, gain_picture
from refimpl.lessons.history_timing.rows import PairRow
from refimpl.lessons.history_timing.shown import COMMAND, RESULT, added, complete, saved, saved_pairs, text
from refimpl.lessons.lines import WIDTH
from tests.unit.lessons.timed_rows import ROW

PAIR = PairRow("8b", DFLASH, 16, LATEST, COARSE, False, 0.0, 0.0, False, 0.999, 0.998, 1.001, -9.0, 6)


def save(folder: Path, **parts: list[Any]) -> None:
    data = {name: [asdict(row) for row in rows] for name, rows in parts.items()}
    results.write(RESULT, data, device="H200", driver="580", torch="2.11.0", command=COMMAND, folder=folder)


def test_columns_that_tell_no_row_from_another_are_left_out() -> None:
    heads, first, second, _, *note = text([ROW, replace(ROW, preset=COARSE, step_ms=13.6)]).splitlines()
    assert " ".join(heads.split()) == "preset host forward step before after at idle"
    assert first.split()[:4] == ["latest", "1.250", "13.500", "13.500"]
    assert "12.250" in second
    assert note[0].startswith("8b, batch 16; n = 36 steps")
    assert max(map(len, note)) <= WIDTH


def test_what_was_added_tells_rows_of_one_preset_apart() -> None:
    rows = [ROW, replace(ROW, added_schedule_ms=0.5), replace(ROW, needs_cpu_seq_lens=True, item=True)]
    _, bare, on_schedule, held, *_ = text(rows).splitlines()
    assert "–" in bare
    assert "schedule +0.5 ms" in on_schedule
    assert "CPU lengths, .item()" in held
    assert "And: what was added" in text(rows)
    assert [added(row) for row in rows] == ["–", "0.5 ms on schedule", "CPU lengths, .item() on schedule"]


def test_what_rows_have_in_common_stands_above_them_where_the_table_is_too_wide() -> None:
    rows = [
        replace(ROW, draft=draft, preset=f"{draft}-synchronize", added_host_ms=ms)
        for ms in (0.0, 3.0)
        for draft in ("eagle", DFLASH)
    ]
    assert text([ROW, replace(ROW, draft="eagle")]).split()[0] == "draft"
    lines = text([replace(row, batch=batch) for batch in (1, 16) for row in rows]).splitlines()
    assert lines[0].split()[:2] == ["preset", "host"]
    assert [line for line in lines[: lines.index("")] if "." not in line][1:4] == [
        "eagle, batch 1",
        "dflash, batch 1",
        "eagle, batch 1, host +3 ms",
    ]


@pytest.mark.parametrize(("part", "model"), [(part, model) for part in PARTS for model in ("small", "8b")])
def test_every_saved_table_fits_the_page(part: str, model: str) -> None:
    assert max(map(len, text(saved(part, model)).splitlines())) <= WIDTH


def test_a_second_engine_of_a_preset_is_marked_and_the_mark_told() -> None:
    shown = text([ROW, replace(ROW, again=True)])
    assert shown.splitlines()[2].startswith("latest* ")
    assert "*: a second engine of the same preset" in " ".join(shown.split())


def test_the_complete_run_is_shown_with_where_it_comes_from(tmp_path: Path) -> None:
    save(tmp_path, self_fence=[ROW, replace(ROW, model="small", step_ms=0.5)], self_fence_pairs=[PAIR])
    words = complete("self_fence", "8b", folder=tmp_path)
    assert "| latest | 1.250 | 13.500 | 13.500 | 0.000 | 12.250 | 0.700 | 0.2% |" in words
    assert "0.500" not in words
    assert "Measured on H200 (driver 580, torch 2.11.0)" in words
    assert COMMAND in words
    save(tmp_path, self_fence=[ROW, replace(ROW, batch=64)])
    assert complete("self_fence", folder=tmp_path).splitlines()[:2] == [
        "| preset | batch | host | forward | step | before | after | at | idle |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    save(tmp_path, self_fence=[ROW], self_fence_pairs=[PAIR])
    assert saved("self_fence", "8b", folder=tmp_path) == [ROW]
    assert saved_pairs("self_fence", folder=tmp_path) == [PAIR]


def test_what_was_not_measured_is_said_with_the_command_that_would(tmp_path: Path) -> None:
    assert COMMAND in complete("chain", folder=tmp_path)
    save(tmp_path, self_fence=[ROW])
    assert COMMAND in complete("chain", folder=tmp_path)
    with pytest.raises(KeyError, match="self_fence"):
        complete("speed", folder=tmp_path)


def test_pictures_say_in_words_what_they_draw() -> None:
    rows = [ROW, replace(ROW, preset="before-29556", before_us=12000.0, after_us=10.0), replace(ROW, batch=64)]
    alt = blocked_picture(rows, "an H200").alt
    assert "before-29556 at batch 16: 12.00 before, 0.01 after" in alt
    swept = [
        replace(ROW, preset=name, step_ms=13.5 + more * (name == COARSE), added_schedule_ms=more)
        for name in (LATEST, COARSE)
        for more in (0.0, 3.0)
    ]
    alt = gain_picture(swept, "an H200").alt
    assert "with 3 ms of work on schedule's stream 16.50 under coarse" in alt
    assert "13.50 under read_done" in alt


def test_a_chapter_measures_its_own_cases_beside_each_other() -> None:
    event, coarse = Case(LATEST, DFLASH), Case(COARSE, DFLASH)
    rows, (pair,) = live.compared([event, coarse], [Pair(event, coarse)], "sim")
    assert [row.preset for row in rows] == [LATEST, COARSE]
    assert pair.ratio <= 1
