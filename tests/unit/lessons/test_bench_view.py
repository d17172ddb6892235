"""What the views are measured on is plausible, and the verdict says what was reached."""

import json
from pathlib import Path

from refimpl.lessons.bench_view import Row, table
from refimpl.lessons.bench_view_runs import loop, write_profile
from refimpl.program import SpanKind
from refimpl.timeline import from_profiler


def row(unit: str, median: float, bar: float) -> Row:
    return Row("pan", 10, unit, median, median, median, 1, bar)


def test_a_run_has_the_spans_that_were_asked_for_within_one_step() -> None:
    assert 1_000 <= len(loop(1_000).spans) <= 1_060


def test_no_work_starts_before_its_call_began_and_no_stream_does_two_things_at_once() -> None:
    ends: dict[str, float] = {}
    for span in loop(2_000).spans:
        assert span.submit_us is None or span.start_us >= span.submit_us
        assert span.start_us >= ends.get(span.lane, 0) or span.lane == "thread 7"
        ends[span.lane] = span.end_us


def test_the_host_is_held_once_a_step() -> None:
    spans = loop(1_000).spans
    held = [s for s in spans if s.kind is SpanKind.BLOCKED]
    assert len(held) == sum(s.name.startswith("build") for s in spans)


def test_a_made_up_profile_has_its_size_and_reads_as_one(tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    write_profile(file, 0.5)
    assert 500_000 < file.stat().st_size < 510_000
    events = json.loads(file.read_text())["traceEvents"]
    kernels = sum(e.get("cat") == "kernel" for e in events)
    assert sum(s.kind is SpanKind.RUN for s in from_profiler(file, merge_launches=False).spans) == kernels > 100


def test_frames_must_be_many_and_seconds_few() -> None:
    assert row("frames/s", 55, 50).met
    assert not row("frames/s", 45, 50).met
    assert row("s", 2, 3).met
    assert not row("s", 4, 3).met
    assert "MISSED" in table([row("s", 4, 3)])
    assert "met" in table([row("s", 2, 3)])
