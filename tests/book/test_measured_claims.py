"""What the text says in words about a measurement holds in the committed result that it quotes."""

import pytest

from refimpl.lessons import results

VERIFY_DONE = results.load("verify_done")
BENCH = results.load("bench_order")
ROWS = VERIFY_DONE.data["rows"]


def of(variant: str) -> list[dict[str, float]]:
    return [row for row in ROWS if row["variant"] == variant]


def test_the_chapter_was_measured_on_a_gpu_with_enough_repeats_and_the_control_in_the_run() -> None:
    assert VERIFY_DONE.driver
    assert {row["variant"] for row in ROWS} == {"one at a time", "none", "synchronize", "wait"}
    assert all(row["n"] >= 30 for row in ROWS)
    assert len({row["host_ms"] for row in ROWS}) >= 5


def test_under_wait_a_step_takes_the_longer_part() -> None:
    assert all(row["over_lower"] <= 1.04 for row in of("wait"))


def test_under_synchronize_a_step_takes_the_sum() -> None:
    assert all(abs(row["over_upper"] - 1) <= 0.05 for row in of("synchronize"))


def test_blocking_moves_from_before_the_launch_to_after_it() -> None:
    for held, waited in zip(of("synchronize"), of("wait"), strict=True):
        assert held["blocked_before_ms"] > 0.9 * held["graph_ms"]
        assert waited["blocked_before_ms"] < 0.02 * waited["graph_ms"]


def test_without_a_fence_every_step_that_could_be_stale_was_and_with_one_none_was() -> None:
    assert all(row["stale"] == row["of"] for row in of("none"))
    assert all(row["stale"] == 0 for name in ("wait", "synchronize", "one at a time") for row in of(name))


@pytest.mark.parametrize("launches", [10_000, 100_000, 1_000_000])
@pytest.mark.parametrize(("name", "ratio"), [("W1", 3), ("W2", 10)])
def test_the_checker_is_faster_than_the_peer_flat_in_memory_and_reports_each_pair_once(
    name: str, ratio: float, launches: int
) -> None:
    (row,) = [r for r in BENCH.data["workloads"] if (r["name"], r["launches"]) == (name, launches)]
    assert row["events_per_s"] >= ratio * row["peer_events_per_s"]
    assert row["rss_growth_mb"] < 5
    assert row["reports"] == row["expected_reports"]
