"""The engine under torch's profiler: where the host stands still is the first line of the account."""

from pathlib import Path

import pytest

from refimpl.fences import preset
from refimpl.lessons.profile_engine import Length, profiled
from refimpl.timeline import from_profiler
from refimpl.timeline.reports.report import report

pytestmark = pytest.mark.gpu

STEPS = 12


@pytest.mark.parametrize(("name", "fenced"), [("before-29556", True), ("29556", False)])
def test_dflashs_own_fence_is_in_the_account_and_under_the_barrier_it_is_gone(
    name: str, fenced: bool, tmp_path: Path
) -> None:
    file = profiled(preset(name), "small", Length(batch=4, steps=STEPS), tmp_path / "trace.json.gz")
    rows = report(from_profiler(file, merge_launches=False)).blocking
    before_launch = [row for row in rows if "prepare_for_decode" in row.name]
    assert bool(before_launch) == fenced
    assert all(row.call == "cudaEventSynchronize" and row.times >= STEPS for row in before_launch)
