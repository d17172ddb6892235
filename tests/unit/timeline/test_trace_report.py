"""The report of a recorded run: every figure is worked out beside it."""

import pytest

from refimpl.program import Trace, TraceSource
from refimpl.timeline.reports.report import Report, report
from tests.unit.timeline.recorded import held, measured, overlapped, ran, self_fenced, worked


def causes(found: Report) -> dict[str, tuple[int, float]]:
    return {one.cause: (one.times, one.us) for one in found.gpu_idle.by_cause}


def path(found: Report) -> list[tuple[str, str, str, int, float]]:
    return [(part.lane, part.name, part.kind, part.times, part.us) for part in found.critical_path]


def test_blocking_calls_come_first_by_their_total_with_count_and_longest() -> None:
    (call,) = report(self_fenced()).blocking
    # 110 to 516 and 626 to 1032: 406 each.
    assert (call.call, call.name, call.lane) == ("cudaEventSynchronize", "synchronize(verify_done)", "host")
    assert (call.times, call.us, call.mean_us, call.max_us) == (2, 812, 406, 406)


def test_one_call_is_two_rows_where_it_waits_for_two_things_and_the_longer_total_is_first() -> None:
    trace = measured(held("synchronize(event 4)", 0, 10), held("synchronize(event 9)", 20, 25), held("copy", 30, 60))
    assert [(row.name, row.times, row.us) for row in report(trace).blocking] == [
        ("copy", 1, 30),
        ("synchronize(event)", 2, 15),
    ]


def test_blocking_calls_of_two_threads_are_two_rows() -> None:
    trace = measured(held("synchronize(stream)", 0, 9), held("synchronize(stream)", 2, 6, lane="thread 7"))
    assert [(row.lane, row.us) for row in report(trace).blocking] == [("host", 9), ("thread 7", 4)]


def test_event_in_an_annotation_loses_both_numbers_so_that_its_steps_are_one_row() -> None:
    trace = measured(held("synchronize(event 4) in step 0", 0, 10), held("synchronize(event 9) in step 1", 20, 25))
    (row,) = report(trace).blocking
    assert (row.name, row.times) == ("synchronize(event) in step", 2)


def test_lanes_time_is_busy_blocked_and_idle_and_calls_that_launch_are_work_of_the_host() -> None:
    host, forward = report(self_fenced()).lanes
    # Two builds of 100, two calls of 10, two blocks of 406: nothing is left of 1032.
    assert (host.busy_us, host.blocked_us, host.idle_us, host.spans) == (220, 812, 0, 4)
    assert (forward.busy_us, forward.blocked_us, forward.idle_us, forward.spans) == (800, 0, 232, 2)


def test_a_host_held_by_the_gpu_and_late_with_the_next_step_is_named_with_what_it_did() -> None:
    found = report(self_fenced())
    assert causes(found) == {
        # 512 to 616: the call holds the host until 516, then it builds.
        "the host was late, after synchronize(verify_done)": (1, 104),
        "the host was late: build": (1, 100),
        "in the launch call, after synchronize(verify_done)": (1, 10),
        "in the launch call": (1, 10),
        # Both steps start 2 behind the return of their call; the last call returns 4 behind the last step.
        "launch latency": (2, 4),
        "drained: nothing more came": (1, 4),
    }
    assert (found.gpu_idle.us, found.gpu_idle.share) == (232, 232 / 1032)


def test_work_that_was_queued_in_time_leaves_only_the_gpus_own_gap() -> None:
    assert causes(report(overlapped())) == {
        "the host was late: build": (1, 100),
        "in the launch call": (1, 10),
        "launch latency": (1, 2),
        "between queued work": (1, 2),
        "drained: nothing more came": (1, 4),
    }


def test_lead_is_from_the_return_of_the_call_to_the_start_and_late_is_what_found_the_gpu_idle() -> None:
    fenced, ahead = report(self_fenced()).launch_lead, report(overlapped()).launch_lead
    assert (fenced.count, fenced.median_us, fenced.late) == (2, 2, 2)
    # 112 - 110 and 514 - 220.
    assert (ahead.count, ahead.median_us, ahead.late) == (2, 148, 1)
    assert (ahead.p10_us, ahead.p90_us) == pytest.approx((2 + 0.1 * 292, 2 + 0.9 * 292))


def test_all_that_one_call_queued_is_one_launch() -> None:
    trace = measured(ran("a", "x", 10, 20, 0, 5), ran("b", "y", 8, 9, 0, 5))
    lead = report(trace).launch_lead
    assert (lead.count, lead.median_us) == (1, 3)


def test_lead_is_unknown_and_not_zero_where_no_call_is() -> None:
    lead = report(measured(ran("a", "x", 0, 5))).launch_lead
    assert (lead.count, lead.p10_us, lead.median_us, lead.p90_us) == (0, None, None, None)


def test_critical_path_of_a_fenced_loop_is_host_and_gpu_in_turn() -> None:
    assert path(report(self_fenced())) == [
        ("forward", "verify", "run", 2, 800),
        ("host", "build", "host", 2, 200),
        ("host", "cudaGraphLaunch", "launch", 2, 20),
        ("host", "synchronize(verify_done)", "blocked", 2, 8),
        ("forward", "launch latency", "idle", 2, 4),
    ]


def test_critical_path_of_an_overlapped_loop_leaves_the_second_build_out() -> None:
    assert path(report(overlapped())) == [
        ("forward", "verify", "run", 2, 800),
        ("host", "build", "host", 1, 100),
        ("host", "cudaGraphLaunch", "launch", 1, 10),
        ("host", "synchronize(verify_done)", "blocked", 1, 4),
        ("forward", "between queued work", "idle", 1, 2),
        ("forward", "launch latency", "idle", 1, 2),
    ]


def test_overlap_is_a_share_of_the_less_busy_stream_and_counts_say_how_many_ran() -> None:
    # a runs 0 to 100, b 60 to 80 and 90 to 110, c 95 to 96.
    trace = measured(ran("a", "x", 0, 100), ran("b", "y", 60, 80), ran("b", "y", 90, 110), ran("c", "z", 95, 96))
    found = report(trace)
    assert [(one.lanes, one.us, one.share) for one in found.overlap] == [
        (("a", "b"), 30, 0.75),
        (("a", "c"), 1, 1.0),
        (("b", "c"), 1, 1.0),
    ]
    assert [(one.streams, one.us) for one in found.concurrency] == [(0, 0), (1, 80), (2, 29), (3, 1)]


def test_json_is_the_documented_form_with_rounded_figures() -> None:
    found = report(measured(worked("build", 0, 1 / 3), ran("a", "x", 1, 2, 0.5, 0.75)), "run.json").to_json()
    assert list(found) == [
        *("source", "device", "us", "spans", "lanes", "blocking", "gpu_idle", "launch_lead"),
        *("critical_path", "overlap", "concurrency"),
    ]
    assert (found["source"], found["device"], found["us"]) == ("run.json", "NVIDIA H200", 2)
    assert found["lanes"][0] == {"lane": "host", "busy_us": 0.583, "blocked_us": 0, "idle_us": 1.417, "spans": 1}
    assert set(found["gpu_idle"]) == {"us", "share", "gpus", "by_cause"}
    assert set(found["critical_path"]) == {"us", "parts"}
    assert found["critical_path"]["us"] == 2


def test_trace_without_gpu_work_says_that_nothing_ran_there() -> None:
    found = report(measured(worked("build", 0, 10)))
    assert causes(found) == {"drained: nothing more came": (1, 10)}
    assert (found.gpu_idle.share, found.overlap, found.launch_lead.count) == (1, (), 0)


def test_empty_trace_has_an_empty_report() -> None:
    found = report(Trace(("host",), (), TraceSource.MEASURED))
    assert (found.us, found.gpu_idle.us, found.critical_path, found.blocking) == (0, 0, (), ())
