"""What holds for the accounts of every trace: nothing is lost, and nothing is counted twice."""

from itertools import pairwise

import pytest
from hypothesis import given, settings

from refimpl.program import Span, SpanKind, UserError
from refimpl.timeline import from_profiler
from refimpl.timeline.reports.critical import critical_path
from refimpl.timeline.reports.report import report
from tests.unit.timeline.recorded import any_spans, measured, profiled

SMALL = settings(max_examples=150, deadline=None, derandomize=True, database=None)
Spans = tuple[Span, ...]


def running(spans: Spans) -> list[set[str]]:
    """For each microsecond, the streams that run: the slow way."""
    end = max(int(span.end_us) for span in spans)
    work = [s for s in spans if s.kind is SpanKind.RUN]
    return [{s.lane for s in work if s.start_us <= at < s.end_us} for at in range(end)]


@SMALL
@given(any_spans())
def test_busy_blocked_and_idle_of_a_lane_are_the_window(spans: Spans) -> None:
    found = report(measured(*spans))
    for lane in found.lanes:
        assert min(lane.busy_us, lane.blocked_us, lane.idle_us) >= 0
        assert lane.busy_us + lane.blocked_us + lane.idle_us == pytest.approx(found.us)


@SMALL
@given(any_spans())
def test_segments_of_the_critical_path_join_from_zero_to_the_end(spans: Spans) -> None:
    trace = measured(*spans)
    path = critical_path(trace)
    if trace.end_us == 0:
        assert path == ()
        return
    assert (path[0].from_us, path[-1].to_us) == (0, trace.end_us)
    assert all(one.to_us == then.from_us for one, then in pairwise(path))
    assert all(one.to_us > one.from_us for one in path)
    assert sum(part.us for part in report(trace).critical_path) == pytest.approx(trace.end_us)


@SMALL
@given(any_spans())
def test_each_moment_without_gpu_work_has_one_cause(spans: Spans) -> None:
    idle = report(measured(*spans)).gpu_idle
    assert sum(one.us for one in idle.by_cause) == pytest.approx(idle.us)
    assert idle.us == sum(not lanes for lanes in running(spans))


@SMALL
@given(any_spans())
def test_streams_at_once_are_counted_as_moment_by_moment(spans: Spans) -> None:
    found, slow = report(measured(*spans)), running(spans)
    assert sum(one.us for one in found.concurrency) == found.us
    assert all(one.us == sum(len(lanes) == one.streams for lanes in slow) for one in found.concurrency)
    assert all(pair.us == sum({*pair.lanes} <= lanes for lanes in slow) for pair in found.overlap)
    assert all(0 < pair.share <= 1 for pair in found.overlap)


@SMALL
@given(any_spans())
def test_figures_do_not_depend_on_when_the_clock_began(spans: Spans) -> None:
    try:
        now = report(from_profiler(profiled(spans)))
    except UserError:
        return
    assert report(from_profiler(profiled(spans, later=1_000_000))) == now


@SMALL
@given(any_spans())
def test_figures_do_not_depend_on_the_names_of_streams(spans: Spans) -> None:
    def renamed(lane: str) -> str:
        return lane.upper() if lane in "abc" else lane

    again = tuple(
        Span(renamed(s.lane), s.name, s.kind, s.start_us, s.end_us, None, s.submit_us, s.ready_us) for s in spans
    )
    before, after = report(measured(*spans)), report(measured(*again))
    assert (before.gpu_idle, before.launch_lead, before.blocking) == (after.gpu_idle, after.launch_lead, after.blocking)
    assert before.concurrency == after.concurrency
