from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest

from refimpl.lessons.bench_engine import peers
from refimpl.lessons.bench_engine.bars import Bar, bars
from refimpl.lessons.bench_engine.table import table


def rows(model: str, loops: dict[str, float], batch: int = 16) -> list[dict[str, Any]]:
    return [{"model": model, "batch": batch, "loop": loop, "tokens_per_s": rate} for loop, rate in loops.items()]


def test_a_bar_is_reached_at_its_value() -> None:
    assert Bar.most("x", 1.0, 1.0).reached
    assert not Bar.most("x", 1.1, 1.0).reached
    assert Bar.least("x", 1.0, 1.0).reached
    assert not Bar.least("x", 0.9, 1.0).reached


def test_the_peer_is_compared_in_both_settings_on_the_same_weights() -> None:
    data = {
        "batched": rows("8b", {"refimpl, plain, event_loop_overlap": 3000, peers.BATCH_ITS_OWN: 400})
        + rows("small", {"refimpl, plain, event_loop_overlap": 100, peers.BATCH_FITTED: 50})
    }
    found = {bar.what: (bar.measured, bar.reached) for bar in bars(data)}
    assert found == {
        f"8b, batch 16: plain over {peers.BATCH_ITS_OWN}": (7.5, True),
        f"small, batch 16: plain over {peers.BATCH_FITTED}": (2.0, False),
    }


def test_dflash_is_held_to_plain_decoding_of_the_same_engine() -> None:
    loops = {
        "refimpl, plain, event_loop_overlap": 200.0,
        "refimpl, dflash, event_loop_overlap": 600.0,
        peers.GENERATE: 30.0,
    }
    (bar,) = bars({"alone": rows("8b", loops, batch=1)})
    assert (bar.measured, bar.reached) == (3.0, True)


def test_a_run_without_figures_has_no_bars() -> None:
    assert bars({}) == []


def test_a_table_names_what_is_not_reached() -> None:
    report = {
        "alone": rows("8b", {"loop": 1234.5}),
        "bars": [vars(Bar.least("a ratio", 1.5, 2.5))],
        "left_out": [],
        "failed": [],
    }
    lines = table(report).splitlines()
    assert lines[0] == "alone"
    assert "1,234" in lines[2] or "1,235" in lines[2]
    assert lines[-1] == "a ratio: 1.5, at least 2.5: NOT REACHED"


def test_an_unknown_part_is_refused_with_those_there_are(refimpl: Callable[..., CompletedProcess[str]]) -> None:
    done = refimpl("bench", "engine", "--only", "alone,speed")
    assert done.returncode != 0
    assert "'speed' is no part" in done.stderr
    assert "overlapped_steps" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--add"], "say which result it is added to"),
        (["--add", "--save", "no-such"], "no result 'no-such'"),
        (["--add", "--save", "bench_engine", "--device", "sim"], "and this is the simulated device"),
        (["--add", "--save", "bench_sim"], "no report of bench engine"),
    ],
)
def test_a_run_that_cannot_be_added_is_refused_before_it_begins(
    refimpl: Callable[..., CompletedProcess[str]], arguments: list[str], says: str
) -> None:
    done = refimpl("bench", "engine", *arguments)
    assert done.returncode != 0
    assert says in done.stderr
    assert "loading" not in done.stderr


def test_an_option_of_another_benchmark_is_refused(refimpl: Callable[..., CompletedProcess[str]]) -> None:
    done = refimpl("bench", "engine", "--repeats", "3")
    assert done.returncode != 0
    assert "bench engine does not take it" in done.stderr
