"""Why a GPU ran nothing, and what a critical path goes through: one rule a test."""

import pytest

from refimpl.program import Span, SpanKind, Trace
from refimpl.timeline.reports.causes import gpu_idle
from refimpl.timeline.reports.critical import critical_path
from tests.unit.timeline.recorded import held, measured, ran, worked


def causes(trace: Trace) -> dict[str, float]:
    return {one.cause: one.us for one in gpu_idle(trace).by_cause}


def path(trace: Trace) -> list[tuple[str, str, str, float]]:
    return [(one.lane, one.name, one.kind, one.to_us - one.from_us) for one in critical_path(trace)]


def test_small_work_behind_a_blocking_call_does_not_hide_that_the_call_made_the_next_launch_late() -> None:
    # The call returns at 516 to an empty GPU after 406; the launch comes 100 later. A copy cuts the gap at 530.
    trace = measured(
        ran("forward", "verify 0", 112, 512, 100, 110),
        held("synchronize(verify_done 0)", 110, 516),
        ran("copy", "lens", 530, 531, 520, 525),
        ran("forward", "verify 1", 628, 1028, 616, 626),
    )
    assert causes(trace)["the host was late, after synchronize(verify_done)"] == (520 - 512) + (616 - 531)


def test_blocking_call_that_returned_to_a_busy_gpu_is_not_blamed() -> None:
    # Another stream has work until 600, queued before the call returned: the host was ahead then.
    trace = measured(
        ran("forward", "verify 0", 112, 512, 100, 110),
        ran("other", "gemm", 113, 600, 101, 108),
        held("synchronize(verify_done 0)", 110, 516),
        ran("forward", "verify 1", 638, 1038, 626, 636),
    )
    # Before the first launch 100, and from 600 to 626.
    assert causes(trace)["the host was late"] == 126


def test_short_blocking_call_is_not_blamed_for_a_long_time_of_other_work() -> None:
    # It holds the host for 4; 90 later comes the launch: without the call it would still have come too late.
    trace = measured(
        ran("forward", "verify 0", 0, 10, 0, 1),
        held("synchronize(verify_done 0)", 12, 16),
        ran("forward", "verify 1", 120, 130, 106, 116),
    )
    assert "the host was late" in causes(trace)


def test_host_that_is_blocked_for_most_of_the_gap_was_held() -> None:
    trace = measured(
        ran("a", "x", 0, 10, 0, 1), held("synchronize(copied 3)", 12, 90), ran("a", "y", 104, 110, 92, 100)
    )
    assert causes(trace) == {
        "the host was held by synchronize(copied)": 82,
        # The call returned to an empty GPU, so that this launch comes as late as it does because of it.
        "in the launch call, after synchronize(copied)": 8,
        "launch latency": 4,
    }


def test_host_that_launches_other_work_meanwhile_is_issuing() -> None:
    # From 10 on the GPU is empty; until 60 the host is in the call of work that starts later still.
    trace = measured(ran("a", "x", 0, 10, 0, 1), ran("b", "late", 90, 95, 12, 60), ran("a", "y", 70, 80, 62, 66))
    assert causes(trace)["the host was late: issuing other work"] == 52


def test_stream_that_waits_is_named_by_what_it_waits_for() -> None:
    wait = Span("a", "wait(read_done 2)", SpanKind.WAIT, 12, 40)
    trace = measured(ran("a", "x", 0, 10, 0, 1), wait, ran("a", "y", 41, 50, 2, 3))
    assert causes(trace) == {"waiting: wait(read_done)": 28, "waiting for something the trace does not show": 3}


def test_queued_work_that_starts_late_for_no_reason_in_the_trace_is_said_to() -> None:
    assert causes(measured(ran("a", "x", 0, 10, 0, 1), ran("a", "y", 31, 40, 2, 3))) == {
        "waiting for something the trace does not show": 21
    }
    assert causes(measured(ran("a", "x", 0, 10, 0, 1), ran("a", "y", 30, 40, 2, 3))) == {"between queued work": 20}


def test_gpus_are_idle_each_for_itself() -> None:
    trace = measured(ran("GPU 0 stream 7", "x", 0, 100, 0, 0), ran("GPU 1 stream 7", "y", 90, 100, 80, 85))
    idle = gpu_idle(trace)
    assert (idle.gpus, idle.us, idle.share) == (2, 90, 90 / 200)
    assert causes(trace) == {"the host was late": 80, "in the launch call": 5, "launch latency": 5}


def test_gap_without_a_call_is_what_the_host_did() -> None:
    assert causes(measured(worked("build 0", 0, 80), ran("a", "x", 90, 95))) == {"the host was late: build": 90}


def test_path_goes_through_the_other_stream_when_work_starts_right_behind_its_end() -> None:
    # y was queued at 6 and its stream was free; it starts 3 behind the end of x, and nothing else ends there.
    trace = measured(ran("a", "x", 4, 50, 0, 2), ran("b", "y", 53, 60, 2, 6))
    assert path(trace) == [
        ("host", "cudaGraphLaunch", "launch", 2),
        ("a", "launch latency", "idle", 2),
        ("a", "x", "run", 46),
        ("b", "wait for a", "idle", 3),
        ("b", "y", "run", 7),
    ]


def test_path_does_not_go_to_another_stream_that_ended_long_before() -> None:
    trace = measured(ran("a", "x", 4, 50, 0, 2), ran("b", "y", 61, 70, 2, 6))
    assert path(trace)[-2] == ("b", "launch latency", "idle", 55)


def test_path_goes_to_the_call_when_it_returned_after_the_stream_was_free() -> None:
    trace = measured(ran("a", "x", 4, 50, 0, 2), worked("build", 2, 60), ran("a", "y", 66, 70, 60, 64))
    assert path(trace) == [
        ("host", "cudaGraphLaunch", "launch", 2),
        ("host", "build", "host", 58),
        ("host", "cudaGraphLaunch", "launch", 4),
        ("a", "launch latency", "idle", 2),
        ("a", "y", "run", 4),
    ]


def test_work_that_starts_inside_its_call_waited_for_the_call_unless_its_stream_was_busy_until_then() -> None:
    alone = measured(ran("a", "x", 0, 4, 0, 1), ran("a", "y", 50, 60, 10, 90))
    assert ("host", "cudaGraphLaunch", "launch", 37) in path(alone)
    behind = measured(ran("a", "x", 0, 49, 0, 1), ran("a", "y", 50, 60, 10, 90))
    assert path(behind)[-2:] == [("a", "between queued work", "idle", 1), ("a", "y", "run", 10)]


def test_blocking_call_that_waits_for_nothing_is_time_of_the_host() -> None:
    trace = measured(ran("a", "x", 2, 10, 0, 1), held("synchronize(done)", 20, 25), worked("build", 25, 40))
    assert path(trace)[-3:] == [
        ("host", "code between calls", "host", 19),
        ("host", "synchronize(done)", "blocked", 5),
        ("host", "build", "host", 15),
    ]


def test_path_begins_with_what_came_before_the_first_work_where_no_call_is_known() -> None:
    assert path(measured(ran("a", "x", 10, 30))) == [
        ("a", "before the first work", "idle", 10),
        ("a", "x", "run", 20),
    ]


def test_path_ends_on_the_thread_that_ends_last() -> None:
    trace = measured(ran("a", "x", 0, 10, 0, 0), held("synchronize(x)", 5, 12, lane="thread 7"))
    assert path(trace) == [("a", "x", "run", 10), ("thread 7", "synchronize(x)", "blocked", 2)]


def test_stretch_in_which_another_thread_launched_shows_what_held_the_host() -> None:
    # The host stands in a call from 5 to 90, and still work is submitted at 40: by a thread that the trace lacks.
    trace = measured(held("synchronize(far)", 5, 90), ran("a", "x", 52, 120, 40, 50))
    assert path(trace)[:3] == [
        ("host", "code between calls", "host", 5),
        ("host", "synchronize(far)", "blocked", 35),
        ("host", "cudaGraphLaunch", "launch", 10),
    ]


@pytest.mark.parametrize("submit", [40, 60], ids=["before", "after"])
def test_clocks_that_disagree_do_not_send_the_path_back_to_the_future(submit: float) -> None:
    trace = measured(ran("a", "x", 50, 120, submit, submit + 5))
    assert [one.from_us for one in critical_path(trace)] == sorted(one.from_us for one in critical_path(trace))


def test_path_shows_the_calls_within_annotated_work_by_themselves() -> None:
    trace = measured(worked("issue", 0, 30), ran("b", "y", 50, 52, 5, 9), ran("a", "x", 22, 60, 10, 20))
    assert path(trace)[:4] == [
        ("host", "issue", "host", 5),
        ("host", "cudaGraphLaunch", "launch", 4),
        ("host", "issue", "host", 1),
        ("host", "cudaGraphLaunch", "launch", 10),
    ]


def test_launch_of_which_each_kernel_found_the_gpu_idle_is_late_once() -> None:
    # One call from 0 to 40; its kernels run at 10, 20 and 30, with nothing between them.
    trace = measured(*(ran("a", f"k {at}", at, at + 5, 0, 40) for at in (10, 20, 30)))
    assert gpu_idle(trace).late == 1


def test_blocking_call_on_the_way_is_not_blamed_when_the_host_took_longer_than_it() -> None:
    # It holds the host for 90 until the GPU is done, but then the host takes 300 to the launch.
    trace = measured(
        ran("a", "x", 5, 100, 0, 2),
        held("synchronize(done 0)", 12, 102),
        worked("build", 102, 400),
        ran("a", "y", 410, 420, 402, 406),
    )
    assert causes(trace)["the host was late: build"] == 302
