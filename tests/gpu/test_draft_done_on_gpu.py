"""``draft_done`` on a GPU: with a fence the plan stream changes nothing, without one it does; the early one overlaps.

Streams are stalled at places drawn from a seed. Each engine runs in a process of its own: a fault ends it.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from refimpl import device as devices
from refimpl.fences import preset
from refimpl.lessons.history.apart import Apart
from refimpl.lessons.history.tasks import Do, Row, Task
from refimpl.lessons.lossless.play import play
from refimpl.lessons.lossless.setups import Setup, build
from tests.fences.page_tables import arrival

pytestmark = pytest.mark.gpu

RUNS, UNFENCED_RUNS, TRAINED_RUNS = 20, 3, 8
STALL_US = 2000.0


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    process = Apart()
    yield process
    process.close()


def rows(apart: Apart, row: str, models: str, runs: int) -> list[Row]:
    found = list(apart.rows(Task(Do.RUNS, row, models, "cuda", tuple(range(runs)))))
    print(f"{row}, {models}: {sum(wrong(one) for one in found)} of {len(found)} runs wrong or faulty")
    return found


def wrong(row: Row) -> bool:
    return bool(row.get("wrong") or row.get("fault"))


def accept_len(found: list[Row]) -> float:
    return sum(one["emitted"] for one in found) / sum(one["verifies"] for one in found)


@pytest.mark.parametrize(
    "row", ["latest-plan", "plan-event", "plan-wait-stream", "plan-repaired", "plan-repaired-wait"]
)
def test_with_a_fence_or_a_repair_the_text_is_right_though_streams_stall(apart: Apart, row: str) -> None:
    assert [one for one in rows(apart, row, "tiny", RUNS) if wrong(one)] == []


def test_an_overwritten_draft_extend_lowers_the_acceptance_and_leaves_the_text_right(apart: Apart) -> None:
    repaired, unrepaired = (rows(apart, row, "nano", TRAINED_RUNS) for row in ("plan-repaired", "plan-repaired-extend"))
    assert [one for one in (*repaired, *unrepaired) if wrong(one)] == []
    print(f"accept length {accept_len(unrepaired):.3f} beside {accept_len(repaired):.3f}")
    assert accept_len(unrepaired) < accept_len(repaired)


@pytest.mark.parametrize(("row", "early"), [("latest-plan", True), ("plan-event", False)])
def test_the_plan_ends_before_a_slow_draft_with_the_early_event_alone(row: str, early: bool) -> None:
    dev, options = devices.get("cuda"), {"fences": preset(row).chosen(), **preset(row).engine}
    scheduler = build(Setup("eagle", device="cuda", max_running_requests=2, options=options)).scheduler
    worker: Any = scheduler.worker
    load = [arrival(0, (3, 1, 4), 9)]
    play(scheduler, load)
    planned, drafted = ([] for _ in range(2))  # type: ignore[var-annotated]
    replay, load_batch = worker.draft_runner.replay, worker.verify_runner.load_batch

    def slow_replay(batch: Any) -> Any:
        dev.sleep_stream(STALL_US)
        outputs = replay(batch)
        drafted.append(dev.Event(enable_timing=True))
        drafted[-1].record()
        return outputs

    def timed_load(batch: Any, tokens: Any) -> None:
        load_batch(batch, tokens)
        planned.append(dev.Event(enable_timing=True))
        planned[-1].record()

    worker.draft_runner.replay, worker.verify_runner.load_batch = slow_replay, timed_load
    play(scheduler, load)
    dev.synchronize()
    before = [one.elapsed_time(other) > 0 for one, other in zip(planned, drafted, strict=True)]
    assert len(before) > 2
    assert set(before) == {early}


def test_without_a_fence_the_text_is_wrong_or_the_process_dies(apart: Apart) -> None:
    # Last in the file: each fault takes a process with it.
    assert any(wrong(one) for one in rows(apart, "plan-none", "tiny", UNFENCED_RUNS))
