from dataclasses import replace

from refimpl.lessons import measure_self_fence as measurement
from tests.unit.lessons.timed_rows import ROW

BARRIER = replace(
    ROW, preset="29556", step_ms=6.0, before_us=4.0, after_us=5200.0, launch_ms=0.4, host_ms=0.8, forward_ms=6.0
)
OWN = replace(BARRIER, preset="before-29556", step_ms=6.8, before_us=5700.0, after_us=3.0)


def test_the_words_set_the_fence_beside_the_barrier_of_its_batch() -> None:
    other = replace(BARRIER, batch=64, before_us=9.0)
    bound = replace(OWN, needs_cpu_seq_lens=True, before_us=1.0)
    words = measurement.moved([other, bound, OWN, BARRIER])
    assert words == (
        "- 8b, batch 16: under `before-29556` the host stands still for 5.70 ms before the launch, 95% of all the time "
        "that it has to spare; under `29556` for 0.004 ms before it and 5.20 ms after it, for results; "
        "a step takes 6.80 and 6.00 ms."
    )


def test_a_host_with_no_time_to_spare_has_no_share() -> None:
    busy = replace(OWN, host_ms=7.0)
    assert "%" not in measurement.moved([busy, BARRIER])


def test_the_live_cases_have_the_control_and_each_item_its_twin() -> None:
    assert measurement.CONTROL in {case.preset for case in measurement.CASES}
    with_item, without = ({case.preset for case in measurement.ITEMS if case.item is item} for item in (True, False))
    assert with_item == without
