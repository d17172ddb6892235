"""The benchmark of the simulated device measures what it says; how fast that is, no test says."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

from refimpl.lessons import bench_sim


def test_every_operator_is_measured_everywhere() -> None:
    rows = bench_sim.measure(repeats=2, ops=3)
    operators = [row.operator for row in rows if row.on == "cpu"]
    assert len(operators) == len(set(operators)) >= 5
    for place in ("timed", "adversary"):
        assert [row.operator for row in rows if row.on == place] == operators
    assert all(row.n == 2 and 0 < row.us_p10 <= row.us <= row.us_p90 for row in rows)


def test_the_table_shows_the_worst_beside_the_bar() -> None:
    rows = [
        bench_sim.Row("add", place, us, us - 1, us + 1, 30)
        for place, us in (("cpu", 5), ("timed", 30), ("adversary", 41))
    ]
    lines = bench_sim.table(rows).splitlines()
    assert "30.0 (29.0 to 31.0)" in lines[1]
    assert lines[-1] == "largest median on sim: 41.0 µs (add, adversary), over 40 µs"


def test_the_command_prints_json(refimpl: Callable[..., CompletedProcess[str]]) -> None:
    done = refimpl("bench", "sim", "--repeats", "1", "--json")
    assert {row["on"] for row in json.loads(done.stdout)["rows"]} == {"cpu", "timed", "adversary"}


def test_sizes_are_for_the_other_benchmark(refimpl: Callable[..., CompletedProcess[str]]) -> None:
    done = refimpl("bench", "sim", "--launches", "10")
    assert done.returncode != 0
    assert "bench sim does not take it" in done.stderr
