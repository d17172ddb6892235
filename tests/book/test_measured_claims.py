"""What the text says in words about a measurement holds in the committed result that it quotes."""

import pytest

from refimpl.fences import Expect
from refimpl.lessons import results, whole_history
from refimpl.lessons.history_timing import shown
from refimpl.lessons.history_timing.rows import FenceRow

VERIFY_DONE = results.load("verify_done")
BENCH = results.load("bench_order")
ROWS = VERIFY_DONE.data["rows"]
LARGE = "8b"
"""The weights of which the chapters tell."""


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


def item_rows() -> dict[tuple[str, str, bool], FenceRow]:
    """Rows of the large weights at the batch that the chapter shows, by draft, preset and `.item()`."""
    rows = [row for row in shown.saved("read_done", LARGE) if row.batch == 16]
    bare = [row for row in rows if not row.added_host_ms and not row.added_schedule_ms]
    return {(row.draft, row.preset, row.item): row for row in bare}


def test_a_plan_stream_gains_nothing_and_costs_little_beside_a_large_forward() -> None:
    pairs = shown.saved_pairs("plan_stream", LARGE)
    assert len(pairs) == 9
    assert all(1 <= pair.ratio < 1.03 for pair in pairs)


def test_an_item_under_the_coarse_barrier_holds_the_host_for_about_a_forward() -> None:
    rows = item_rows()
    for draft in ("dflash", "eagle"):
        row = rows[draft, "coarse", True]
        assert row.before_us / 1000 == pytest.approx(row.forward_ms, rel=0.1)
        assert rows[draft, "coarse", False].before_us < 0.01 * row.before_us


def test_an_item_under_the_event_lets_dflash_go_much_earlier_and_eagle_hardly() -> None:
    rows = item_rows()
    dflash, eagle = (rows[draft, "latest", True] for draft in ("dflash", "eagle"))
    assert dflash.before_us / 1000 < 0.6 * dflash.forward_ms
    assert eagle.before_us / 1000 > 0.9 * eagle.forward_ms


def test_a_step_grows_by_far_less_than_an_item_holds_the_host() -> None:
    rows = item_rows()
    for draft in ("dflash", "eagle"):
        for preset in ("coarse", "latest"):
            bare, item = (rows[draft, preset, with_item] for with_item in (False, True))
            assert 0 < item.step_ms - bare.step_ms < 0.1 * item.before_us / 1000
            # What moves in front of the launch is missing behind it.
            assert item.before_us + item.after_us == pytest.approx(bare.after_us, rel=0.1)


def test_dropped_tokens_find_every_race_that_the_text_does_not_show() -> None:
    quiet = [row for row in whole_history.either().values() if row["races"] and not row["wrong_runs"]]
    assert {row["preset"] for row in quiet} >= {"29843", "29556-hip", "before-29556", "25465"}
    assert all(row["unmasked_wrong_runs"] > 0 for row in quiet)


def test_more_than_half_of_the_racy_moments_emitted_the_right_text_all_the_same() -> None:
    found = whole_history.either()
    moments = [found[one.name] for one in whole_history.moments()]
    racy = [row for row in moments if row["races"]]
    assert 2 * len(racy) > len(moments)
    assert 2 * sum(whole_history.found(row) == Expect.RACY_MASKED for row in racy) > len(racy)
