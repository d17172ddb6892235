"""The fixes of publish, on programs recorded from the engine: which of them orders what, and what comes out without."""

from collections import Counter
from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.engine.future_map import FutureMap
from refimpl.engine.request import FinishReason
from refimpl.engine.scheduler import Scheduler
from refimpl.engine.streams import allocate_streams
from refimpl.fences import Expect, Fences, Load, Publish, history
from refimpl.lessons.lossless.play import play
from refimpl.order import check
from refimpl.program import Buffer, EventRecord, Launch, Op, Program, Range, Stream, StreamWaitEvent, Verdict
from refimpl.record import record
from tests.fences.seeding import (
    LONG_PROMPTS,
    PLAIN,
    SEEDED,
    engine_of,
    prefilled,
    races,
    recorded,
    report,
    wrong_requests,
)

TRIES, MORE_TRIES = 9, 40
LENS, TOKENS, HIDDEN = "new_seq_lens_buf", "output_tokens_buf", "hidden_states"
RELAY = {LENS, TOKENS, HIDDEN}
STASHED = {("WAW", TOKENS)}
STASHED_EAGLE = STASHED | {("WAW", HIDDEN)}
# What the write-ups of 30435, 34077 and 35748 come to: without a fix, with the chain, with the wait. A read_done behind
# the publish covers the lengths; one before it, or none, covers nothing of the relay. EAGLE stashes more than a token.
MATRIX: dict[str, set[tuple[str, str]]] = {
    "seed-overwrite-barrier-eagle": STASHED_EAGLE,
    "seed-chain-barrier-eagle": STASHED_EAGLE,
    "seed-wait-stream-barrier-eagle": set(),
    "seed-overwrite-barrier-dflash": {("RAW", LENS), ("WAW", LENS)} | STASHED,
    "seed-chain-barrier-dflash": {("WAW", LENS)} | STASHED,
    "seed-wait-stream-barrier-dflash": set(),
    "seed-overwrite-bare-eagle": {("RAW", LENS), ("WAW", LENS)} | STASHED_EAGLE,
    "seed-chain-bare-eagle": {("WAW", LENS)} | STASHED_EAGLE,
    "seed-wait-stream-bare-eagle": set(),
    "seed-overwrite-bare-dflash": {("RAW", LENS), ("WAW", LENS)} | STASHED,
    "seed-chain-bare-dflash": {("WAW", LENS)} | STASHED,
    "seed-wait-stream-bare-dflash": set(),
}
PREBUILT = [row for row in history() if row.load is Load.PREBUILT]
RIGHT = [row.name for row in PREBUILT if row.expect is Expect.RIGHT]
BARE_BUT_WAITING = ["seed-wait-stream-bare-eagle", "seed-wait-stream-bare-dflash"]
HARMFUL = [row.name for row in PREBUILT if row.expect is not Expect.RIGHT and row.name not in BARE_BUT_WAITING]


@pytest.mark.parametrize("name", MATRIX)
def test_what_races_in_the_relay_is_what_the_matrix_of_the_fixes_says(name: str) -> None:
    assert {(kind, buf) for kind, buf in races(name) if buf in RELAY} == MATRIX[name]


@pytest.mark.parametrize("name", [name for name in MATRIX if "-barrier-" in name])
def test_with_a_barrier_nothing_but_the_relay_races(name: str) -> None:
    assert {buf for _, buf in races(name)} <= RELAY


@pytest.mark.parametrize("name", RIGHT)
def test_where_the_history_says_right_the_checker_finds_no_race(name: str) -> None:
    assert report(name).verdict is Verdict.OK


def test_the_record_of_a_seed_drops_what_the_forward_in_flight_recorded_unless_it_waits_or_chains() -> None:
    assert _lints("seed-overwrite-bare-dflash") == {"record-drops-capture"}
    assert "record-drops-capture" not in _lints("seed-chain-bare-dflash")
    assert _lints("seed-wait-stream-bare-dflash") == set()


def _lints(name: str) -> set[str]:
    return {lint.rule for lint in report(name).lints}


@pytest.mark.parametrize("name", RIGHT)
def test_where_the_history_says_right_every_order_gives_the_text_of_the_target(name: str) -> None:
    scheduler = engine_of(name)
    assert [_wrong(scheduler, SEEDED, seed) for seed in range(TRIES)] == [[]] * TRIES


@pytest.mark.parametrize("name", HARMFUL)
def test_where_the_history_says_harmful_some_order_gives_another_text(name: str) -> None:
    scheduler = engine_of(name)
    assert any(_wrong(scheduler, SEEDED, seed) for seed in (3, 12, 9, *range(MORE_TRIES)))


@pytest.mark.parametrize("name", BARE_BUT_WAITING)
def test_without_a_barrier_a_redundant_forward_writes_into_the_kv_that_was_brought_for_the_next_owner(
    name: str,
) -> None:
    """A prefill here would write it again behind that forward. What excuses the race elsewhere does not hold."""
    scheduler = engine_of(name)
    assert any(_wrong(scheduler, LONG_PROMPTS, seed) for seed in range(TRIES))


@pytest.mark.parametrize("name", ["seed-wait-stream-barrier-eagle", "seed-wait-stream-barrier-dflash"])
def test_with_the_barrier_that_kv_is_what_was_brought(name: str) -> None:
    scheduler = engine_of(name)
    assert [_wrong(scheduler, LONG_PROMPTS, seed) for seed in range(TRIES)] == [[]] * TRIES


def _wrong(scheduler: Scheduler, load: Any, seed: int) -> list[int]:
    dev, given = devices.sim(), prefilled(scheduler, load)
    with dev.schedule(dev.Adversary(seed=seed)):
        played = play(scheduler, load, prebuilt=given)
    assert all(req.finish_reason is FinishReason.LENGTH for req in played.reqs)
    return wrong_requests(played)


def test_without_seeds_the_chain_adds_waits_of_the_forward_stream_for_itself_and_nothing_else() -> None:
    plain, chained = (
        recorded(engine_of(f"seed-{name}-barrier-dflash"), PLAIN).program() for name in ("wait-stream", "chain")
    )
    added = Counter(map(_call, chained.ops)) - Counter(map(_call, plain.ops))
    assert set(added) == {("stream_wait_event", "forward", "publish_ready")}
    assert added.total() == sum(_call(op) == ("event_record", "forward", "publish_ready") for op in chained.ops)
    assert not Counter(map(_call, plain.ops)) - Counter(map(_call, chained.ops))


def _call(op: Op) -> tuple[str, str, str]:
    event = getattr(op, "event", "")
    return op.op, getattr(op, "stream", ""), event if event == "publish_ready" else ""


# By hand: the two rows of a relay, and what is read of them on a third stream.

A, B = Range("new_seq_lens_buf", 0, 8), Range("new_seq_lens_buf", 8, 8)
STASH = Range("output_tokens_buf", 8, 8)


def _publish(stream: str, row: Range, *before: Op) -> list[Op]:
    write = Launch(stream=stream, name="publish", writes=(row,))
    return [write, *before, EventRecord(event="publish_ready", stream=stream)]


def _wait(stream: str) -> Op:
    return StreamWaitEvent(event="publish_ready", stream=stream)


def _program(*ops: Op) -> Program:
    streams = {name: Stream() for name in ("forward", "schedule", "d2h")}
    return Program(ops=ops, streams=streams, buffers={A.buf: Buffer(16), STASH.buf: Buffer(16)}, id="relay")


READ = [_wait("d2h"), Launch(stream="d2h", name="pull", reads=(A,))]


def test_a_record_forgets_and_a_chain_remembers() -> None:
    forgot = check(_program(*_publish("forward", A), *_publish("schedule", B), *READ))
    assert [str(race.kind) for race in forgot.races] == ["RAW"]
    assert [lint.rule for lint in forgot.lints] == ["record-drops-capture"]
    remembered = check(_program(*_publish("forward", A), *_publish("schedule", B, _wait("schedule")), *READ))
    assert (remembered.verdict, remembered.lints) == (Verdict.OK, ())


def test_the_chain_orders_neither_the_seed_itself_nor_a_stash_behind_the_record() -> None:
    redundant = [*_publish("forward", B), Launch(stream="forward", name="stash", writes=(STASH,))]
    seed = [*_publish("schedule", B, _wait("schedule")), Launch(stream="schedule", name="seed", writes=(STASH,))]
    found = check(_program(*redundant, *seed))
    assert [(str(race.kind), race.bytes.buf) for race in found.races] == [("WAW", B.buf), ("WAW", STASH.buf)]


def test_a_wait_for_an_event_that_nobody_recorded_is_none_and_is_pointed_out() -> None:
    """The rank that is idle under data parallelism publishes nothing, and so makes no event."""
    found = check(_program(Launch(stream="forward", name="publish", writes=(A,)), *READ))
    assert found.verdict is Verdict.RACE
    assert [lint.rule for lint in found.lints] == ["wait-unrecorded"]


def _future_map(publish: Publish) -> FutureMap:
    fences = next(row.chosen() for row in PREBUILT if row.chosen().publish is publish)
    return FutureMap("sim", 4, {}, fences, allocate_streams("sim"))


@pytest.mark.parametrize("publish", [Publish.OVERWRITE, Publish.CHAIN, Publish.WAIT_STREAM])
def test_an_idle_rank_makes_no_event_and_waits_for_none(publish: Publish) -> None:
    future_map, rows = _future_map(publish), torch.zeros(0, dtype=torch.int64, device="sim")
    with record("sim") as recording:
        future_map.publish(rows, rows)
        future_map.resolve_seq_lens(rows)
    assert future_map.publish_ready is None
    assert not [op for op in recording.ops if isinstance(op, EventRecord | StreamWaitEvent)]


def test_an_idle_step_leaves_the_event_of_the_last_publish_as_it_is() -> None:
    future_map, dev = _future_map(Publish.WAIT_STREAM), devices.sim()
    rows = torch.arange(2, device="sim")
    with dev.stream(future_map._streams.forward_stream):
        future_map.publish(rows, rows + 5)
        held = future_map.publish_ready.mark
        future_map.publish(rows[:0], rows[:0])
    assert future_map.publish_ready.mark is held


def test_the_default_is_the_wait_and_its_publish_records_plainly() -> None:
    assert Fences().publish is Publish.WAIT_STREAM
    future_map, rows = _future_map(Publish.WAIT_STREAM), torch.arange(2, device="sim")
    with record("sim") as recording, future_map._streams.forward_stream:
        future_map.publish(rows, rows)
        future_map.publish(rows, rows)
    assert [op.op for op in recording.ops if not isinstance(op, Launch)].count("event_record") == 2
    assert not [op for op in recording.ops if isinstance(op, StreamWaitEvent)]
