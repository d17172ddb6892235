"""What a benchmark's file holds is not lost to a run that measures less."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from refimpl.commands import bench
from refimpl.commands.overwriting import is_measured, lost_groups, refuse_other
from refimpl.lessons import results
from refimpl.lessons.results import Result

Command = Callable[..., subprocess.CompletedProcess[str]]
ROWS = {"chain": [{"model": "8b"}], "chain_pairs": [{"model": "8b"}], "read_done": [{"model": "small"}]}
FULL = Result("full", "d", "", "2", "2026-11-30", "c", {"plan": {}, **ROWS, "bars": [], "left_out": [], "failed": []})


def test_groups_of_parts_and_of_weights_that_a_run_leaves_out_are_lost() -> None:
    assert lost_groups(FULL, ["chain", "read_done"], ["8b", "small"]) == []
    assert lost_groups(FULL, ["chain"], ["8b", "small"]) == ["small: read_done"]
    assert lost_groups(FULL, ["chain", "read_done"], ["small"]) == ["8b: chain", "8b: chain_pairs"]


def test_a_report_without_a_row_is_not_measured() -> None:
    assert is_measured(FULL.data)
    assert not is_measured({"plan": {"8b": {}}, "bars": [], "left_out": ["8b: chain"], "failed": []})


def test_a_shorter_run_does_not_take_the_place_of_a_fuller_one(refimpl: Command) -> None:
    done = refimpl("bench", "fences", "--device", "sim", "--only", "chain", "--save", "bench_fences")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "would lose" in done.stderr
    assert "--add" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "lossless --device sim --seeds 1 --workers plain --save lossless_sim",
        "footguns raw --runs 1 --device sim --save footguns_sim",
        "bench order --launches 100 --save bench_order",
        "bench sim --repeats 1 --save footguns_sim",
        "bench engine --device sim --save bench_order",
        "history --runs 1 --only 21940 --save verify_done",
        "calibrate --predict h200 --save overlap_loop",
    ],
)
def test_a_result_is_made_anew_by_its_own_command_alone(refimpl: Command, words: str) -> None:
    name = words.split()[-1]
    was = results.file_of(name).read_bytes()
    done = refimpl(*words.split())
    assert done.returncode == 2
    assert results.load(name).command in done.stderr
    assert done.stderr.count("\n") == 1
    assert results.file_of(name).read_bytes() == was


def test_the_same_command_and_a_new_name_are_let_through() -> None:
    for name in ("lossless_sim", "bench_order", "prediction"):
        refuse_other(name, results.load(name).command)
    refuse_other("bench_engine", "python -m refimpl bench engine", options=False)
    refuse_other("no_such_result", "python -m refimpl lossless")


def test_where_nothing_was_measured_no_file_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(results.check_writable, "__defaults__", (tmp_path,))
    monkeypatch.setattr(results.file_of, "__defaults__", (tmp_path,))
    empty = {"plan": {}, "bars": [], "left_out": ["nano: chain"], "failed": []}
    monkeypatch.setattr(bench, "_fences", lambda args, keep: (keep(empty), (empty, "no rows"))[1])
    parser = bench.argparse.ArgumentParser()
    bench.add_arguments(parser)
    code = bench.run(parser.parse_args(["fences", "--device", "sim", "--save", "new"]))
    assert code == 1
    assert "nothing was measured" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
