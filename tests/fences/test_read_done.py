"""``read_done``: where each variant records it, against where the replay reads; the mailbox; the node in the graph."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.engine.scheduler import Scheduler
from refimpl.engine.workers.dflash import DFlashWorker
from refimpl.fences import (
    Fences,
    ReadDone,
    SharedReadBoundary,
    apply_war_barrier,
    preset,
    publishes_at_verify,
    recorded_at,
)
from refimpl.lessons.lossless.campaign import Judge
from refimpl.lessons.lossless.load import LoadShape
from refimpl.lessons.lossless.play import play
from refimpl.lessons.lossless.setups import WORKERS, Setup, build
from refimpl.order import Report, check
from refimpl.program import EventRecord, GraphLaunch, Program, StreamWaitEvent, Verdict
from refimpl.record import record
from tests.device.snippets import recorded as snippet_recorded
from tests.fences.page_tables import HANDOVER, Watch, arrival
from tests.litmus.words import OK, RACE, graph, node, verdict, wait, wait_stream
from tests.litmus.words import read as reads
from tests.litmus.words import record as records
from tests.litmus.words import write as writes

ROWS, CONTEXT = 2, 24
TRIES = 9
SNAPSHOT, LIVE = False, True
# In turn 4 a prefill is in flight whose request is aborted; the row goes to the next one, which waits already.
ABORTS = [arrival(0, (3, 1, 4, 1, 5), 16), arrival(3, (9, 2, 6), 9, abort_after=1), arrival(4, (5, 3, 2, 7, 5), 6)]
EVERYWHERE = [one for one in ReadDone if one is not ReadDone.STALE_MAILBOX]
CASES = [("dflash", live, one) for live in (SNAPSHOT, LIVE) for one in EVERYWHERE] + [
    (worker, live, one)
    for worker in ("plain", "eagle", "mtp")
    for live in (SNAPSHOT, LIVE)
    for one in (ReadDone.PRE_REPLAY, ReadDone.DECLARED, ReadDone.WRONG_PHASE)
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def built(worker: str, fences: Fences | None = None, live: bool = SNAPSHOT, variant: str = "overlap") -> Scheduler:
    options = {"metadata_in_graph": live, "fences": fences or Fences()}
    return build(Setup(worker, variant, max_running_requests=ROWS, max_context=CONTEXT, options=options)).scheduler


def recorded(scheduler: Scheduler, load: Any = HANDOVER) -> Program:
    """A load as it runs in steady state."""
    play(scheduler, load)
    memory = scheduler.memory
    with record("sim") as recording:
        for name in ("schedule", "forward"):
            recording.name(getattr(scheduler.streams, f"{name}_stream"), name)
        recording.name(memory.req_to_token_pool.req_to_token, "req_to_token")
        if hasattr(memory.allocator, "full_to_swa"):
            recording.name(memory.allocator.full_to_swa, "full_to_swa")
        play(scheduler, load)
    assert recording.widened == ()
    return recording.program()


def raced(report: Report) -> set[str]:
    return {race.bytes.buf for race in report.races}


@pytest.mark.parametrize(("worker", "live", "variant"), CASES)
def test_an_event_is_sound_where_it_stands_behind_the_last_read_of_the_last_reader(
    worker: str, live: bool, variant: ReadDone
) -> None:
    before_the_replay = recorded_at(variant, SharedReadBoundary.IN_REPLAY) is SharedReadBoundary.PRE_REPLAY
    before_the_draft_extend = publishes_at_verify(variant) and worker in ("eagle", "mtp")
    report = check(recorded(built(worker, Fences(read_done=variant), live)))
    assert raced(report) == ({"req_to_token"} if (live and before_the_replay) or before_the_draft_extend else set())


@pytest.mark.parametrize(
    ("variant", "at_stake"), [(ReadDone.DECLARED, set()), (ReadDone.PRE_REPLAY, {"req_to_token", "full_to_swa"})]
)
def test_the_map_of_the_sliding_layers_is_read_live_too(variant: ReadDone, at_stake: set[str]) -> None:
    scheduler = built("dflash", Fences(read_done=variant), LIVE, "sliding window")
    assert raced(check(recorded(scheduler, [arrival(0, (3, 1, 4, 1, 5), 18), *HANDOVER]))) == at_stake


@pytest.mark.parametrize("live", [SNAPSHOT, LIVE])
def test_what_a_replay_reads_is_the_snapshot_or_the_table_of_that_time(live: bool) -> None:
    scheduler = built("dflash", live=live)
    runner, table = scheduler.worker.last_shared_read_runner, scheduler.memory.req_to_token_pool.req_to_token
    replay, seen = runner.replay, list[bool]()

    def overwritten(batch: Any, *publish: Any) -> Any:
        kept = table.clone()
        table.add_(1)
        outputs = replay(batch, *publish)
        seen.append(bool((runner.inputs.page_table[0] == table[batch.req_pool_indices[0]]).all()))
        table.copy_(kept)
        return outputs

    runner.replay = overwritten  # type: ignore[method-assign]
    play(scheduler, HANDOVER[:1])
    assert set(seen) == {live}


@cache
def watch(name: str) -> Watch:
    row = preset(name)
    return Watch(built(row.worker, row.chosen(), row.engine.get("metadata_in_graph", SNAPSHOT)))


def _foreign(name: str, seed: int) -> int:
    dev = devices.sim()
    with dev.schedule(dev.Adversary(seed=seed)):
        return watch(name).foreign_blocking()


@pytest.mark.parametrize("name", ["pre-replay-live", "wrong-phase", "29843"])
def test_an_event_too_early_lets_some_order_give_a_step_the_slots_of_the_next_owner_of_its_row(name: str) -> None:
    assert any(_foreign(name, seed) for seed in range(2 * TRIES))


@pytest.mark.parametrize("name", ["34052", "post-replay-live", "29541", "latest"])
def test_an_event_behind_the_last_read_lets_no_order_do_so(name: str) -> None:
    assert [_foreign(name, seed) for seed in range(TRIES)] == [0] * TRIES


@pytest.mark.parametrize(
    ("worker", "variant"),
    [*((worker, "overlap") for worker in WORKERS), ("dflash", "all at once"), ("mtp", "all at once")],
)
def test_with_live_tables_every_token_is_the_one_that_the_target_likes_best(worker: str, variant: str) -> None:
    judge = Judge(build(Setup(worker, variant, options={"metadata_in_graph": LIVE})))
    assert [judge.run(LoadShape(requests=6, vocabulary=40), seed).wrong for seed in range(2)] == [()] * 2


# The node in the graph


def events_of_graphs(program: Program) -> set[str]:
    launches = [op for op in program.ops if isinstance(op, GraphLaunch)]
    return {node.record for launch in launches for node in launch.nodes if node.record is not None}


def waits_on_an_old_capture(program: Program) -> int:
    """Waits of schedule for a capture that it has waited for before."""
    waited, old = set[str](), 0
    for op in program.ops:
        if isinstance(op, EventRecord):
            waited.discard(op.event)
        elif isinstance(op, GraphLaunch):
            waited -= {node.record for node in op.nodes if node.record is not None}
        elif isinstance(op, StreamWaitEvent) and op.stream == "schedule":
            old += op.event in waited
            waited.add(op.event)
    return old


def test_each_barrier_waits_for_what_the_launch_of_its_own_step_records() -> None:
    program = recorded(built("dflash", live=LIVE))
    events = events_of_graphs(program)
    waits = [op for op in program.ops if isinstance(op, StreamWaitEvent) and op.event in events]
    launches = [op for op in program.ops if isinstance(op, GraphLaunch) and any(node.record for node in op.nodes)]
    assert len(waits) == len(launches) > len(events) > 0
    assert waits_on_an_old_capture(program) == 0


def test_a_wait_behind_the_next_launch_is_bound_to_that_one_and_an_earlier_wait_is_not() -> None:
    step = graph("s", node("metadata", reads="x"), node("read_done", "metadata", record="e"), node("run", "read_done"))
    assert verdict(step, step, wait("e", "t"), writes("t")) == OK
    assert verdict(step, wait("e", "t"), step, writes("t")) == RACE


@pytest.mark.parametrize("late", [False, True])
def test_on_the_device_too_a_wait_is_bound_to_the_launch_before_it(late: bool) -> None:
    dev = devices.sim()
    dev.synchronize()
    assert any(_second_replay_reads_what_came_after(seed, late) for seed in range(TRIES)) is not late


def _second_replay_reads_what_came_after(seed: int, late: bool) -> bool:
    dev = devices.sim()
    table, taken = torch.ones(4, device="sim"), torch.zeros(4, device="sim")
    forward, schedule, read_done, step = dev.Stream(), dev.Stream(), dev.Event(external=True), dev.CUDAGraph()
    dev.synchronize()
    with dev.graph(step, stream=forward):
        taken.copy_(table)
        read_done.record(forward)
        taken.mul_(10)
    with dev.schedule(dev.Adversary(seed=seed)):
        with forward:
            step.replay()
            if not late:
                schedule.wait_event(read_done)
            step.replay()
        if late:
            schedule.wait_event(read_done)
        with schedule:
            table.fill_(2)
        return bool((taken.cpu() == 20).any())


def test_a_recording_knows_the_rows_that_a_replay_reads_and_the_mark_behind_them() -> None:
    recording = snippet_recorded("metadata_in_a_graph", "sim")
    assert check(recording.program()).verdict is Verdict.OK
    assert recording.widened == ()


def test_a_graph_without_a_node_makes_the_barrier_coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DFlashWorker, "publishes", lambda *_: False)
    program = recorded(built("dflash", live=LIVE))
    assert events_of_graphs(program) == set()
    assert check(program).verdict is Verdict.OK


# The mailbox


def _published(scheduler: Scheduler, load: Any = HANDOVER) -> list[Any]:
    """What the mailbox held behind each step, a prefill's too."""
    runner, run_batch, found = scheduler.worker.last_shared_read_runner, scheduler.run_batch, list[Any]()

    def noting(batch: Any) -> Any:
        result = run_batch(batch)
        found.append((batch.forward_mode.is_extend(), runner.shared_read_done_event))
        return result

    scheduler.run_batch = noting  # type: ignore[method-assign]
    play(scheduler, load)
    return found


@pytest.mark.parametrize("worker", ["plain", "dflash", "eagle", "mtp"])
@pytest.mark.parametrize("live", [SNAPSHOT, LIVE])
def test_a_decode_publishes_and_a_prefill_does_not(worker: str, live: bool) -> None:
    found = _published(built(worker, live=live))
    assert [event is None for extend, event in found] == [extend for extend, _ in found]


def test_no_step_makes_an_event() -> None:
    snapshot, live = (_published(built("dflash", live=live)) for live in (SNAPSHOT, LIVE))
    assert len({id(event) for _, event in snapshot if event is not None}) == 1
    assert len({id(event) for _, event in live if event is not None}) <= len(built("dflash").config.batch_sizes)
    assert sum(event is not None for _, event in live) > len({id(event) for _, event in live})


def test_coarse_publishes_nothing() -> None:
    found = _published(built("dflash", Fences(read_done=ReadDone.COARSE)))
    assert {event for _, event in found} == {None}


def _mailbox(name: str) -> Program:
    return recorded(built("plain", preset(name).chosen()), ABORTS)


def test_a_mailbox_that_is_not_cleared_fences_a_prefill_by_the_event_of_an_older_step() -> None:
    stale, cleared = _mailbox("stale-mailbox"), _mailbox("28363")
    assert (waits_on_an_old_capture(stale) > 0, waits_on_an_old_capture(cleared)) == (True, 0)
    assert (raced(check(stale)), raced(check(cleared))) == ({"req_to_token"}, set())


# Boundaries


@pytest.mark.parametrize("boundary", SharedReadBoundary)
def test_declared_records_where_the_backend_says(boundary: SharedReadBoundary) -> None:
    assert recorded_at(ReadDone.DECLARED, boundary) is boundary


def test_the_backends_declare_what_they_read() -> None:
    boundaries = {live: built("dflash", live=live).worker.last_shared_read_runner.boundary for live in (SNAPSHOT, LIVE)}
    assert boundaries == {SNAPSHOT: SharedReadBoundary.PRE_REPLAY, LIVE: SharedReadBoundary.IN_REPLAY}


def _piecewise(fence: Callable[[], Any]) -> Any:
    """Two captured pieces of a forward on s, with attention run eagerly between them; t hands the row on."""
    pieces = (graph("s", node("first", writes="y")), reads("s"), graph("s", node("second", reads="y")))
    return verdict(records("e", "s"), *pieces, fence(), writes("t"))


def test_between_piecewise_graphs_nobody_knows_the_last_read_so_the_barrier_is_coarse() -> None:
    assert recorded_at(ReadDone.DECLARED, SharedReadBoundary.UNKNOWN) is SharedReadBoundary.UNKNOWN
    assert _piecewise(lambda: wait("e", "t")) == RACE
    assert _piecewise(lambda: wait_stream("t", "s")) == OK


def test_without_an_event_the_barrier_waits_for_the_stream() -> None:
    dev = devices.sim()
    forward, schedule, x = dev.Stream(), dev.Stream(), torch.zeros(1, device="sim")
    dev.synchronize()
    with record("sim") as recording:
        with forward:
            x.add_(1)
        apply_war_barrier(None, schedule, forward)
        with schedule:
            x.add_(1)
    assert check(recording.program()).verdict is Verdict.OK
