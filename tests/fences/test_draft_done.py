"""draft_done: what the plan stream may do beside the draft, by each variant; proved, and in the values."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.engine.scheduler import Scheduler
from refimpl.engine.workers.eagle import EagleWorker
from refimpl.fences import DraftDone, Fences, preset
from refimpl.lessons.lossless.campaign import Judge
from refimpl.lessons.lossless.load import Arrival, LoadShape
from refimpl.lessons.lossless.play import Played, play
from refimpl.lessons.lossless.setups import Setup, build
from refimpl.model.tokenizer import Tokenizer
from refimpl.order import Report, check
from refimpl.order import build as graph_of
from refimpl.order.flags import ancestors
from refimpl.program import EventRecord, Launch, Memcpy, Op, Program, Span, StreamWaitEvent, StreamWaitStream, Verdict
from refimpl.program.errors import UserError
from refimpl.record import Recording, record
from tests.fences.page_tables import HANDOVER, arrival

WORKERS = ("eagle", "eagle-tree", "mtp")
FENCED = {DraftDone.EVENT: "plan-event", DraftDone.WAIT_STREAM: "plan-wait-stream", DraftDone.EARLY: "latest-plan"}
SHAPE = LoadShape(requests=8, vocabulary=40, aborted=0.0)
STEADY = [arrival(0, (3, 1, 4, 1, 5), 16), arrival(0, (9, 2, 6), 14)]
STALL_US = 3000.0
"""Longer than a whole step takes on the simulated device, host work included."""
ANYTHING = (RuntimeError, AssertionError, ValueError, KeyError, UserError)
"""What a run that went wrong may end in: an index that the device refuses, an account that does not add up."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def setup(worker: str, row: str, rows: int = 2, **fields: Any) -> Setup:
    options = {"fences": preset(row).chosen(), **preset(row).engine}
    return Setup(worker, max_running_requests=rows, options=options, **{"max_context": 24, **fields})


def recorded(worker: str, row: str, load: Sequence[Arrival] = HANDOVER) -> Recording:
    """A first run, in the timed order; if it faults, up to that."""
    dev, scheduler = devices.sim(), build(setup(worker, row)).scheduler
    with suppress(*ANYTHING), dev.schedule(dev.Timed()), record("sim") as recording:
        _name(recording, scheduler)
        play(scheduler, load)
    return recording


def _name(recording: Recording, scheduler: Scheduler) -> None:
    worker: Any = scheduler.worker
    for name in ("schedule", "forward", "copy", "plan"):
        recording.name(getattr(scheduler.streams, f"{name}_stream"), name)
    recording.name(scheduler.memory.req_to_token_pool.req_to_token, "req_to_token")
    recording.name(worker.plan.draft_done, "draft_done")
    for runner in worker.runners():
        inputs = runner.inputs
        named = {"seq_lens": inputs.seq_lens, "page_table": inputs.page_table, **inputs.tokens}
        for name, tensor in named.items():
            recording.name(tensor, f"{runner.name}.{name}")


@cache
def program(worker: str, row: str) -> Program:
    return recorded(worker, row).program()


@cache
def report(worker: str, row: str) -> Report:
    return check(program(worker, row))


@pytest.mark.parametrize("row", FENCED.values())
@pytest.mark.parametrize("worker", WORKERS)
def test_with_a_fence_no_two_accesses_race(worker: str, row: str) -> None:
    recording = recorded(worker, row)
    assert check(recording.program()).verdict is Verdict.OK
    assert recording.widened == ()


@pytest.mark.parametrize("row", FENCED.values())
@pytest.mark.parametrize("worker", WORKERS)
def test_with_a_fence_the_text_is_right_in_any_order(worker: str, row: str) -> None:
    judge = Judge(build(setup(worker, row, rows=3, max_context=32)))
    first = WORKERS.index(worker) + len(WORKERS) * list(FENCED.values()).index(row)
    assert [judge.run(SHAPE, first + 9 * at).wrong for at in range(3)] == [()] * 3


@pytest.mark.parametrize("worker", WORKERS)
def test_the_plan_prepares_verify_and_draft_extend_and_allocates_nothing(worker: str) -> None:
    ops = [op for op in program(worker, "latest-plan").ops if getattr(op, "stream", None) == "plan"]
    touched = {r.buf for op in ops if isinstance(op, Launch) for r in op.writes}
    touched |= {op.dst.buf for op in ops if isinstance(op, Memcpy)}
    assert {"verify.page_table", "verify.seq_lens", "draft_extend.page_table", "draft_extend.seq_lens"} <= touched
    assert "req_to_token" not in touched
    assert not scheduler_of(worker).memory.plan_stream


def scheduler_of(worker: str, row: str = "latest-plan") -> Scheduler:
    devices.sim()
    return build(setup(worker, row)).scheduler


@pytest.mark.parametrize("worker", ["eagle", "eagle-tree"])
def test_without_a_plan_stream_the_verify_reads_what_was_drafted_where_it_lies(worker: str) -> None:
    plain: Any = build(Setup(worker, max_running_requests=2, max_context=24)).scheduler.worker
    planned: Any = scheduler_of(worker).worker
    assert isinstance(plain, EagleWorker)
    assert plain.plan is None
    assert not plain.verify_runner.inputs.tokens
    assert set(planned.verify_runner.inputs.tokens) == {"bonus_tokens", *plain.drafted}


# The event and wait_stream: one fence in two spellings


def core(found: Program) -> tuple[list[int], list[tuple[str, str, str]]]:
    """The ops but for the fence between draft and plan, and what each of them is."""
    kept = [index for index, op in enumerate(found.ops) if not _forks_plan(op)]
    ops = [found.ops[index] for index in kept]
    return kept, [(op.op, str(getattr(op, "stream", "")), str(getattr(op, "name", ""))) for op in ops]


def _forks_plan(op: Op) -> bool:
    if isinstance(op, EventRecord | StreamWaitEvent):
        return op.event == "draft_done"
    return isinstance(op, StreamWaitStream) and (op.stream, op.on) == ("plan", "forward")


def orders(found: Program, kept: list[int]) -> list[set[int]]:
    """For each step of the ops kept, which of these steps come before it."""
    graph, place = graph_of(found), {op: at for at, op in enumerate(kept)}
    before = ancestors(graph)
    # A graph's launch is several steps: each has its place among the steps that are kept.
    steps = [step.index for step in graph.steps if step.op in place]
    return [{at for at, other in enumerate(steps) if before[step] >> other & 1} for step in steps]


@pytest.mark.parametrize("worker", WORKERS)
def test_the_event_at_the_tail_orders_every_two_steps_as_wait_stream_does(worker: str) -> None:
    event, stream = program(worker, "plan-event"), program(worker, "plan-wait-stream")
    (event_kept, event_ops), (stream_kept, stream_ops) = core(event), core(stream)
    assert len(event.ops) > len(event_kept)
    assert event_ops == stream_ops
    assert orders(event, event_kept) == orders(stream, stream_kept)


def test_an_event_before_the_draft_orders_less() -> None:
    event, early = program("eagle", "plan-event"), program("eagle", "latest-plan")
    waits = [sum(map(len, orders(one, core(one)[0]))) for one in (event, early)]
    assert waits[1] < waits[0]


# What overlaps


def test_the_plan_runs_beside_the_drafts_forward_with_the_early_event_alone() -> None:
    beside = {variant: beside_draft_us(recorded("eagle", row, STEADY)) for variant, row in FENCED.items()}
    assert beside[DraftDone.EARLY] > 0
    assert beside[DraftDone.EVENT] == beside[DraftDone.WAIT_STREAM] == 0


def beside_draft_us(recording: Recording) -> float:
    """How long plan was at work while the draft's graph ran."""
    ops, spans = recording.program().ops, recording.trace().spans
    graphs = [span for span in spans if span.lane == "forward" and span.op is not None and _drafts(ops[span.op])]
    plan = [span for span in spans if span.lane == "plan" and span.kind == "run"]
    assert graphs
    assert plan
    return sum(_overlap_us(one, other) for one in graphs for other in plan)


def _drafts(op: Op) -> bool:
    """The draft's graph is the one that reads the relayed hidden states."""
    nodes = getattr(op, "nodes", ())
    return any(r.buf == "draft.hidden_states" for node in nodes for r in node.reads)


def _overlap_us(one: Span, other: Span) -> float:
    return max(0.0, min(one.end_us, other.end_us) - max(one.start_us, other.start_us))


# The races


def test_without_a_fence_the_plan_reads_what_three_others_have_not_written() -> None:
    found = report("eagle", "plan-none")
    assert found.verdict is Verdict.RACE
    raw = {race.second.name for race in found.races if race.kind == "RAW"}
    copied = {word for name in raw for word in name.split() if "." in word}
    assert {"verify.draft_tokens", "verify.bonus_tokens", "verify.seq_lens", "draft_extend.seq_lens"} <= copied
    assert "req_to_token" in {race.bytes.buf for race in found.races}


@pytest.mark.parametrize("worker", WORKERS)
@pytest.mark.parametrize("row", ["before-21940", "25917-revert", "plan-none"])
def test_without_a_fence_some_order_ends_in_a_fault_or_in_wrong_text(row: str, worker: str) -> None:
    assert any(goes_wrong(worker, row, seed) for seed in range(6))


def goes_wrong(worker: str, row: str, seed: int) -> bool:
    judge = Judge(build(setup(worker, row, rows=3, max_context=32)))
    try:
        return bool(judge.run(SHAPE, seed).wrong)
    except ANYTHING:
        return True


@pytest.mark.parametrize("row", ["plan-repaired", "plan-repaired-wait"])
@pytest.mark.parametrize("worker", WORKERS)
def test_a_repair_leaves_the_race_and_hides_it(worker: str, row: str) -> None:
    found = report(worker, row)
    kinds = {(str(race.kind), race.bytes.buf.split(".")[0]) for race in found.races}
    assert found.verdict is Verdict.RACE
    # What is read too early is read for a copy into the verify's tokens; no static input is overwritten too early.
    assert not {("WAR", "verify"), ("WAR", "draft_extend")} & kinds
    assert any(race.kind == "RAW" and "to verify." in race.second.name for race in found.races)
    judge = Judge(build(setup(worker, row, rows=3, max_context=32)))
    assert [judge.run(SHAPE, seed).wrong for seed in range(3)] == [()] * 3


@pytest.mark.parametrize("seed", range(3, 20))
def test_a_repair_hides_the_race_in_more_orders(seed: int) -> None:
    assert repaired_judge().run(SHAPE, seed).wrong == ()


@cache
def repaired_judge() -> Judge:
    return Judge(build(setup("eagle", "plan-repaired", rows=3, max_context=32)))


def test_what_nobody_repairs_is_overwritten_while_the_last_draft_extend_reads_it() -> None:
    found = report("eagle", "plan-repaired-extend")
    war = {race.bytes.buf for race in found.races if race.kind == "WAR"}
    assert {"draft_extend.seq_lens", "draft_extend.page_table"} <= war
    assert not {buf for buf in war if buf.startswith("verify.")}


def test_an_overwritten_draft_extend_lowers_the_acceptance_and_leaves_the_text_right() -> None:
    """The forward stream stands still between publish and draft extend; plan goes on to the next step's inputs."""
    repaired, unrepaired = (stalled_behind_publish(row) for row in ("plan-repaired", "plan-repaired-extend"))
    assert [req.output_ids for req in repaired.reqs] == [req.output_ids for req in unrepaired.reqs]
    assert accept_len(unrepaired) < 0.8 * accept_len(repaired)


def stalled_behind_publish(row: str) -> Played:
    dev, scheduler = devices.sim(), build(setup("eagle", row, models="nano", max_context=64)).scheduler
    publish: Any = scheduler.lengths.publish

    def then_stall(*published: Any) -> None:
        publish(*published)
        dev.sleep_stream(STALL_US)

    scheduler.lengths.publish = then_stall  # type: ignore[method-assign]
    texts = [Tokenizer.load().encode(text) for text in ("def fib(n):", "class Queue:")]
    with dev.schedule(dev.Timed()):
        return play(scheduler, [arrival(0, ids, 24) for ids in texts])


def accept_len(played: Played) -> float:
    accepted: list[Mapping[int, int]] = [req.accept_lens for req in played.reqs]
    emitted = sum(length * times for one in accepted for length, times in one.items())
    return emitted / sum(times for one in accepted for times in one.values())


def test_a_step_is_planned_from_the_forward_stream_alone() -> None:
    worker: Any = scheduler_of("eagle").worker
    with pytest.raises(AssertionError, match="planned from forward_stream"):
        worker.plan.verify(worker.verify_runner, None, {}, False)


def test_the_fences_of_a_plan_stream_are_chosen_by_name() -> None:
    assert {preset(row).chosen().draft_done: row for row in FENCED.values()} == FENCED
    assert Fences().draft_done is DraftDone.EARLY
