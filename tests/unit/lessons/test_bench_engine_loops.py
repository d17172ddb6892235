"""The benchmark's parts on the simulated device, where times are known: nano weights, random."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

import refimpl.device as devices
from refimpl.lessons.bench_engine import report as reports
from refimpl.lessons.bench_engine.acceptance import acceptance
from refimpl.lessons.bench_engine.beside_peers import alone
from refimpl.lessons.bench_engine.drive import Loop, run_to_end, serve
from refimpl.lessons.bench_engine.forward_only import forward_stream_ms, forward_work, replays
from refimpl.lessons.bench_engine.host_calls import calls_a_step, counted
from refimpl.lessons.bench_engine.observed import blocking_calls, observed
from refimpl.lessons.bench_engine.overlapped_step import overlapped_steps
from refimpl.lessons.bench_engine.plan import SIMULATED, Amounts
from refimpl.lessons.bench_engine.report import Run
from refimpl.lessons.bench_engine.serving import served
from refimpl.lessons.bench_engine.subject import PLAIN, Subject
from refimpl.lessons.bench_engine.table import table
from refimpl.lessons.bench_engine.workload import Workload
from refimpl.model.registry import random_draft, random_target
from refimpl.model.shapes import FAMILIES

WORK = Workload(2, prompt_tokens=4, new_tokens=12)
HOST_MS = 0.5
FORWARD_MS = 0.6
"""What a decode is stalled for in tests that need a device slower than the host's own work."""


def make(name: str = "nano", amounts: Amounts = SIMULATED, forced: Sequence[int] | None = None) -> Subject:
    devices.sim()
    family = FAMILIES["nano"]
    target = random_target(family.target, "sim")
    drafts = {kind: random_draft(family.drafts()[kind], target) for kind in amounts.drafts}
    return Subject(name, target, drafts, forced)


@pytest.fixture(scope="module")
def subject() -> Iterator[Subject]:
    made = make(forced=[0, 0, 1])
    yield made
    made.close()


@pytest.fixture
def slow_decodes(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, dev = subject.scheduler(PLAIN, 2).worker, devices.sim()
    decode = worker.forward_decode

    def slow(*args: Any) -> Any:
        dev.sleep_stream(1000 * FORWARD_MS)
        return decode(*args)

    monkeypatch.setattr(worker, "forward_decode", slow)


def test_watching_changes_nothing_and_ends_with_the_run(subject: Subject) -> None:
    scheduler = subject.scheduler(PLAIN, 2)
    methods = (scheduler.get_next_batch_to_run, scheduler.worker.forward_batch_generation)
    bare = subject.requests(WORK)
    run_to_end(scheduler, bare)
    watched = subject.requests(WORK)
    with observed(scheduler, marks=True, host_work_us=100) as watch:
        run_to_end(scheduler, watched)
    assert [req.output_ids for req in watched] == [req.output_ids for req in bare]
    assert (scheduler.get_next_batch_to_run, scheduler.worker.forward_batch_generation) == methods
    assert watch.beats


def test_a_step_is_host_work_and_standing_still(subject: Subject) -> None:
    scheduler = subject.scheduler(PLAIN, 2)
    with observed(scheduler, marks=True, host_work_us=1000 * HOST_MS) as watch:
        run_to_end(scheduler, subject.requests(WORK), Loop.NORMAL)
    steps = watch.steady(2, skip=2)
    assert steps
    for step in steps:
        assert step.added_us == pytest.approx(1000 * HOST_MS)
        assert step.host_us > step.added_us
        assert step.idle_us is not None
        assert step.device_us is not None
        # In the un-overlapped loop the device waits for the added work.
        assert step.added_us < step.idle_us < step.device_us
        assert step.device_us == pytest.approx(step.us, rel=0.01)


def test_steps_beside_an_arrival_or_a_departure_are_not_steady(subject: Subject) -> None:
    scheduler = subject.scheduler(PLAIN, 2)
    with observed(scheduler) as watch:
        run_to_end(scheduler, subject.requests(Workload(3, prompt_tokens=4, new_tokens=8, spread=6)))
    inner = range(1, len(watch.beats) - 1)
    full = [all(watch.beats[at + near].decodes(2) for near in (-1, 0, 1)) for at in inner]
    assert len(watch.steady(2, skip=0)) == sum(full)
    assert 0 < sum(full) < len(watch.beats) - 4


def test_only_calls_that_block_count_as_standing_still() -> None:
    dev = devices.sim()
    held: list[float] = []
    event = dev.Event()
    with blocking_calls("sim", held.append):
        dev.sleep_stream(1000)
        event.record()
        event.query()
        assert held == []
        event.synchronize()
    assert len(held) == 1
    assert held[0] == pytest.approx(1000, rel=0.1)


def test_forward_work_alone_takes_the_graph_and_the_glue(subject: Subject) -> None:
    scheduler = subject.scheduler(PLAIN, 2)
    with observed(scheduler) as watch:
        run_to_end(scheduler, subject.requests(WORK))
    batch = watch.last_decode(2)
    (whole, *_) = forward_stream_ms(scheduler, forward_work(scheduler, batch), 3, stall_us=5000)
    (graph, *_) = forward_stream_ms(scheduler, replays(scheduler, batch), 3, stall_us=5000)
    assert 0 < graph < whole
    # And it leaves the scheduler as it was.
    again, first = subject.requests(WORK), subject.requests(WORK)
    run_to_end(scheduler, first)
    run_to_end(scheduler, again)
    assert [req.output_ids for req in again] == [req.output_ids for req in first]


@pytest.mark.usefixtures("slow_decodes")
def test_the_overlapped_step_is_its_forward_work_where_the_host_is_faster(subject: Subject) -> None:
    (row,) = overlapped_steps(subject, PLAIN, [2], 2, rounds=1, work=WORK)
    assert row.host_ms < row.forward_ms
    assert row.over_forward == pytest.approx(1, abs=0.01)
    assert row.idle_share < 0.01
    assert row.blocked_ms == pytest.approx(row.step_ms - row.host_ms, rel=0.01)


def test_the_reference_costs_the_same_beside_every_row_where_the_host_is_steady(subject: Subject) -> None:
    rows = overlapped_steps(subject, PLAIN, [1, 2], 2, rounds=1, work=WORK)
    assert len({row.reference_us for row in rows}) == 1
    assert 0 < rows[0].reference_us < 1000 * rows[0].host_ms


def test_a_step_with_a_draft_replays_its_graphs_and_waits_for_nothing_more(subject: Subject) -> None:
    plain, drafted = (calls_a_step(subject.scheduler(draft, 2), subject.requests(WORK)) for draft in (PLAIN, "dflash"))
    assert (plain["replay"], drafted["replay"]) == (1, 3)
    assert plain["synchronize"] == drafted["synchronize"] == 1
    assert plain["record"] == drafted["record"]
    assert drafted["operator"] > plain["operator"]


def test_calls_are_counted_inside_alone() -> None:
    dev = devices.sim()
    stream, event, cell = dev.Stream(), dev.Event(), torch.zeros(1, device="sim")
    with counted("sim") as calls:
        with stream:
            cell.add_(1)
        stream.wait_event(event)
        event.record(stream)
        torch.zeros(1).add_(1)
    cell.add_(1)
    event.synchronize()
    assert calls == {"operator": 1, "stream switch": 1, "wait": 1, "record": 1}


def test_random_weights_borrow_the_accept_lengths_of_an_earlier_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def subjects(name: str, amounts: Amounts, forced: Sequence[int] | None) -> Subject:
        seen.append(forced)
        return make(name, amounts, forced)

    monkeypatch.setattr(reports, "RANDOM", ("nano",))
    amounts = replace(SIMULATED, drafts=())
    Run("sim", only=(), models={"nano": amounts}, subjects=subjects, accept_lens=[1, 2]).measure()
    assert seen == [[1, 2]]
    assert reports.recorded({"acceptance": [{"draft": "eagle", "domain": "code", "temperature": 0.0}]}) is None
    row = {"draft": "dflash", "domain": "code", "temperature": 0.0, "histogram": [3, 4]}
    assert reports.recorded({"acceptance": [row]}) == [3, 4]


def test_a_full_batch_stays_full_until_the_last_request_arrives(subject: Subject) -> None:
    scheduler = subject.scheduler(PLAIN, 2)
    reqs = subject.requests(Workload(6, prompt_tokens=4, new_tokens=6, spread=3))
    out = serve(scheduler, reqs, 2, Loop.OVERLAP)
    assert all(req.finished() for req in reqs)
    assert 0 < out.tokens < sum(len(req.output_ids) for req in reqs)
    assert out.us > 0
    with pytest.raises(ValueError, match="none would arrive"):
        serve(scheduler, reqs[:3], 2, Loop.OVERLAP)


@pytest.mark.usefixtures("slow_decodes")
def test_serving_keeps_to_its_bounds_and_overlap_gains(subject: Subject) -> None:
    work = Workload(6, prompt_tokens=4, new_tokens=10, spread=3)
    overlap, normal = served(subject, PLAIN, 2, work, host_ms=[HOST_MS], rounds=1)
    assert (overlap.loop, normal.loop) == ("event_loop_overlap", "event_loop_normal")
    assert normal.over_normal == 1.0
    assert overlap.over_normal > 1.1
    assert 0.95 < overlap.over_lower < normal.over_lower
    assert normal.over_upper < 1.05


def test_forced_accept_lengths_are_what_the_engine_reports(subject: Subject) -> None:
    row = acceptance(subject, "dflash", "code", [[1, 2, 3], [4, 5]], 0.0, new_tokens=10, max_running_requests=2)
    assert row.accept_len == 3.0
    assert row.histogram == [0, 0, row.verifies]
    assert row.prompts == 2


def test_a_part_that_fails_is_told_and_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(reports, "plain_steps", fail)
    amounts = replace(SIMULATED, drafts=(), plain_batches=(1,), overlapped_plain=(1,))
    run = Run("sim", only=("plain_steps", "overlapped_steps"), models={"nano": amounts}, subjects=make)
    report = run.measure()
    assert report["failed"] == ["nano: plain_steps: RuntimeError: no such thing"]
    assert [row["draft"] for row in report["overlapped_steps"]] == [PLAIN]
    assert "failed: nano: plain_steps" in table(report)


def test_what_time_was_short_for_is_told() -> None:
    report = Run("sim", only=("plain_steps",), seconds=0.0, models={"nano": SIMULATED}, subjects=make).measure()
    assert report["left_out"] == ["nano: plain_steps"]
    assert "left out, time was short: nano: plain_steps" in table(report)


def test_one_request_is_decoded_with_and_without_a_draft(subject: Subject) -> None:
    plain, dflash = alone(subject, Workload(1, prompt_tokens=4, new_tokens=24), (2, 2), with_peers=False, rounds=1)
    assert (plain.loop, plain.accept_len) == ("refimpl, plain, event_loop_overlap", 1.0)
    assert (dflash.loop, dflash.accept_len) == ("refimpl, dflash, event_loop_overlap", 3.0)
    assert dflash.tokens_per_s == pytest.approx(3 * 1000 / dflash.step_ms, rel=0.01)


def test_heads_that_are_embedding_tables_count_once(subject: Subject) -> None:
    assert subject.head().shape == (subject.target.config.vocab_size, subject.target.config.hidden_size)
    assert torch.equal(subject.head().cpu(), subject.target.embed_tokens.weight.cpu())
