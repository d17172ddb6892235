"""Traces of the engine that torch.profiler made on an H200: the accounts against a count of the raw slices."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from refimpl.timeline import from_profiler
from refimpl.timeline.reports.report import Report, report

TRACES = Path(__file__).parents[3] / "results" / "traces"
FENCED, FREE = TRACES / "before-29556-8b.json.gz", TRACES / "29556-8b.json.gz"
WHERE = "prepare_for_decode"


def slices(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


@pytest.fixture(scope="module")
def fenced() -> Report:
    return report(from_profiler(FENCED))


@pytest.fixture(scope="module")
def free() -> Report:
    return report(from_profiler(FREE))


def test_call_of_the_self_fence_is_first_with_the_count_and_total_of_the_raw_slices(fenced: Report) -> None:
    found = slices(FENCED)
    rooms = [(e["ts"], e["ts"] + e["dur"]) for e in found if e.get("cat") == "user_annotation" and e["name"] == WHERE]
    calls = [e for e in found if e["name"] == "cudaEventSynchronize"]
    held = [e["dur"] for e in calls if any(a <= e["ts"] and e["ts"] + e["dur"] <= b for a, b in rooms)]
    first = fenced.blocking[0]
    assert (first.call, first.name) == ("cudaEventSynchronize", f"synchronize(event) in {WHERE}")
    assert (first.times, first.us) == (len(held), pytest.approx(sum(held), abs=1))


def test_under_the_barrier_nothing_holds_the_host_there(free: Report) -> None:
    assert free.blocking
    assert not [call for call in free.blocking if WHERE in call.name]


def test_idle_time_of_the_self_fence_is_ascribed_to_it_and_gone_under_the_barrier(fenced: Report, free: Report) -> None:
    def behind(found: Report) -> float:
        return sum(one.us for one in found.gpu_idle.by_cause if f"after synchronize(event) in {WHERE}" in one.cause)

    saved = fenced.gpu_idle.us - free.gpu_idle.us
    assert behind(free) == 0
    assert behind(fenced) > saved / 2


def test_gpu_is_idle_when_no_slice_of_it_covers_the_moment(free: Report) -> None:
    found = slices(FREE)
    kernels = sorted(
        (e["ts"], e["ts"] + e["dur"]) for e in found if e.get("cat", "") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    each = report(from_profiler(FREE, merge_launches=False))
    busy, until = 0.0, 0.0
    for start, end in kernels:
        busy, until = busy + max(end - max(start, until), 0.0), max(until, end)
    assert each.us - each.gpu_idle.us == pytest.approx(busy, abs=1)
    assert free.gpu_idle.us <= each.gpu_idle.us


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.json.gz")), ids=lambda path: path.name)
def test_figures_of_every_trace_add_up(path: Path) -> None:
    found = report(from_profiler(path))
    assert sum(part.us for part in found.critical_path) == pytest.approx(found.us)
    assert sum(one.us for one in found.gpu_idle.by_cause) == pytest.approx(found.gpu_idle.us)
    assert sum(one.us for one in found.concurrency) == pytest.approx(found.us)
    for lane in found.lanes:
        assert lane.busy_us + lane.blocked_us + lane.idle_us == pytest.approx(found.us)
