"""What a wait is worth in the engine: compared with the control, and told with what it was measured on."""

from dataclasses import replace

from refimpl.lessons.history_timing.cases import CONTROL
from refimpl.lessons.history_timing.rows import FenceRow
from refimpl.lessons.measure_engine_wait import CASES, compared, worth

BASE = FenceRow(
    model="nano",
    draft="eagle",
    preset="eagle-wait",
    needs_cpu_seq_lens=False,
    again=False,
    batch=4,
    added_host_ms=0.0,
    added_schedule_ms=0.0,
    item=False,
    step_ms=1.0,
    step_p10_ms=1.0,
    step_p90_ms=1.0,
    before_us=0.0,
    before_p10_us=0.0,
    before_p90_us=0.0,
    after_us=0.0,
    launch_ms=0.1,
    host_ms=0.5,
    forward_ms=1.0,
    over_lower=1.0,
    over_upper=0.7,
    idle_share=0.0,
    reference_us=1.0,
    n=4,
)
ROWS = [BASE, replace(BASE, preset="eagle-synchronize", step_ms=1.2), replace(BASE, preset=CONTROL, step_ms=1.8)]


def test_what_synchronize_loses_is_a_share_of_what_the_overlap_gains() -> None:
    (one,) = compared(ROWS)
    assert one.given_away is not None
    assert abs(one.given_away - 0.25) < 1e-9
    assert "loses 25%" in worth(ROWS)


def test_where_the_overlap_gains_nothing_no_share_is_told() -> None:
    rows = [replace(row, step_ms=1.0) for row in ROWS]
    (one,) = compared(rows)
    assert one.given_away is None
    assert "loses" not in worth(rows)


def test_rows_with_other_work_or_without_a_control_are_not_mixed() -> None:
    more = [replace(row, added_host_ms=1.0) for row in ROWS]
    assert len(list(compared([*ROWS, *more]))) == 2
    assert list(compared(ROWS[:2])) == []
    assert "with 1 ms of host work" in worth(more)


def test_the_cases_have_either_fence_for_either_draft_and_the_control() -> None:
    for draft in ("eagle", "dflash"):
        mine = {case.preset for case in CASES if case.draft == draft}
        assert mine == {f"{draft}-synchronize", f"{draft}-wait", CONTROL}
