"""On a GPU whose forward is stalled: what is left of the seeds of prebuilt requests, k of n beside 0 of n."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.engine.future_map import FutureMap, RelayPayload
from refimpl.engine.scheduler import Scheduler
from refimpl.engine.streams import allocate_streams
from refimpl.fences import Expect, Load, before_prebuilt, history
from refimpl.lessons.lossless.play import play
from tests.fences.seeding import LONG_PROMPTS, SEEDED, engine_of, prefilled, wrong_requests

pytestmark = pytest.mark.gpu

RUNS, SEEDINGS = 10, 200
STALL_US = 3000.0
ROW = 5
# The matrix of the fixes, and what is the most recent of the history; the others of its rows lie between these.
PREBUILT = [row for row in history() if row.load is Load.PREBUILT and row.name.startswith(("seed-", "35748"))]
RIGHT = [row.name for row in PREBUILT if row.expect is Expect.RIGHT]
BARE_BUT_WAITING = ["seed-wait-stream-bare-eagle", "seed-wait-stream-bare-dflash"]
HARMFUL = [row.name for row in PREBUILT if row.expect is not Expect.RIGHT and row.name not in BARE_BUT_WAITING]


@pytest.fixture(autouse=True)
def without_tf32() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


def _stalled(scheduler: Scheduler) -> Scheduler:
    """Each publish and each stash of a forward comes late; seeds do not."""
    dev, relay = devices.get("cuda"), scheduler.future_map

    def late(write: Callable[..., None]) -> Callable[..., None]:
        def run(*args: Any) -> None:
            if dev.current_stream() == scheduler.forward_stream:
                dev.sleep_stream(STALL_US)
            write(*args)

        return run

    relay.publish, relay.stash = late(relay.publish), late(relay.stash)  # type: ignore[method-assign]
    return scheduler


def _spoiled(name: str, load: Any, stalled: Callable[[Scheduler], Scheduler] = _stalled) -> int:
    """Runs with another text than the target's, of :data:`RUNS`."""
    scheduler = engine_of(name, "cuda")
    given = prefilled(scheduler, load)
    stalled(scheduler)
    spoiled = sum(bool(wrong_requests(play(scheduler, load, prebuilt=given))) for _ in range(RUNS))
    print(f"{name}: {spoiled} of {RUNS} runs with wrong text")
    return spoiled


@pytest.mark.parametrize("name", HARMFUL)
def test_where_the_history_says_harmful_a_stalled_forward_spoils_texts(name: str) -> None:
    assert _spoiled(name, SEEDED) > 0


@pytest.mark.parametrize("name", RIGHT)
def test_where_the_history_says_right_a_stalled_forward_spoils_none(name: str) -> None:
    assert _spoiled(name, SEEDED) == 0


def _late_loads(scheduler: Scheduler) -> Scheduler:
    """Each step begins late, so that its rows may have gone to somebody else."""
    dev, generate = devices.get("cuda"), scheduler.worker.forward_batch_generation

    def late(batch: Any, on_publish: Any) -> Any:
        dev.sleep_stream(STALL_US)
        return generate(batch, on_publish)

    scheduler.worker.forward_batch_generation = late  # type: ignore[method-assign]
    return scheduler


@pytest.mark.parametrize("name", BARE_BUT_WAITING)
def test_without_a_barrier_a_late_forward_writes_into_the_kv_that_was_brought_for_the_next_owner(name: str) -> None:
    assert _spoiled(name, LONG_PROMPTS, _late_loads) > 0


def test_with_the_barrier_a_late_forward_does_not() -> None:
    assert _spoiled("seed-wait-stream-barrier-dflash", LONG_PROMPTS, _late_loads) == 0


def _overwritten(name: str) -> tuple[int, int]:
    """Seedings after which the row holds the lengths, or the token, of its last owner's forward, and not the seed."""
    dev, streams = devices.get("cuda"), allocate_streams("cuda")
    fences = next(row.chosen() for row in PREBUILT if row.name == name)
    relay = FutureMap("cuda", ROW + 1, {}, fences, streams)
    row = torch.tensor([ROW], device="cuda")
    lens = tokens = 0
    for run in range(1, SEEDINGS + 1):
        redundant, seed = torch.tensor([2 * run], device="cuda"), torch.tensor([2 * run + 1], device="cuda")
        dev.synchronize()
        with streams.forward_stream:
            dev.sleep_stream(STALL_US / 10)
            relay.publish(row, redundant)
            dev.sleep_stream(STALL_US / 10)
            relay.stash(row, RelayPayload(redundant))
        with streams.schedule_stream:
            before_prebuilt(fences.publish, streams.schedule_stream, streams.forward_stream)
            relay.publish(row, seed, streams.schedule_stream)
            relay.stash(row, RelayPayload(seed))
        dev.synchronize()
        lens += int(relay.new_seq_lens_buf[ROW]) != 2 * run + 1
        tokens += int(relay.output_tokens_buf[ROW]) != 2 * run + 1
    print(f"{name}: lengths overwritten in {lens}, tokens in {tokens} of {SEEDINGS}")
    return lens, tokens


@pytest.mark.parametrize("publish", ["overwrite", "chain"])
def test_a_redundant_forward_overwrites_seeds_that_do_not_wait_for_it(publish: str) -> None:
    lens, tokens = _overwritten(f"seed-{publish}-bare-dflash")
    assert lens > SEEDINGS / 2
    assert tokens > SEEDINGS / 2


def test_seeds_that_wait_for_it_stand() -> None:
    assert _overwritten("seed-wait-stream-bare-dflash") == (0, 0)
