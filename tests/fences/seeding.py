"""Requests whose prefill ran elsewhere, on engines of the history's presets: loads in which rows change hands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import torch

from refimpl.engine.kv_transfer import Prebuilt
from refimpl.engine.request import SamplingParams
from refimpl.engine.scheduler import Scheduler
from refimpl.fences import preset
from refimpl.lessons.lossless.load import Arrival
from refimpl.lessons.lossless.oracle import judge_greedy
from refimpl.lessons.lossless.play import Played, play, prefilled_blocking
from refimpl.lessons.lossless.setups import Setup, build, oracle_target
from refimpl.model.qwen3 import Qwen3
from refimpl.order import Report, check
from refimpl.record import Recording, record

ROWS, CONTEXT = 2, 24


def arrival(turn: int, prompt: Sequence[int], tokens: int, prebuilt: bool = False) -> Arrival:
    return Arrival(turn, tuple(prompt), SamplingParams(max_new_tokens=tokens, ignore_eos=True), prebuilt=prebuilt)


# Two rows for four requests: each prebuilt one takes over the row of one that ended, with its redundant forward in
# flight, and beside one that goes on.
SEEDED = [
    arrival(0, (3, 1, 4, 1, 5), 4),
    arrival(0, (9, 2, 6), 9),
    arrival(1, (5, 3, 8, 9, 7, 9, 3, 2, 3, 8), 6, prebuilt=True),
    arrival(2, (8, 9, 7, 9), 5, prebuilt=True),
]
# The prompt is longer than all that the last owner of its row had.
LONG_PROMPTS = [
    arrival(0, (3, 1), 3),
    arrival(0, (9, 2, 6), 9),
    arrival(1, (5, 3, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6), 6, prebuilt=True),
    arrival(1, (8, 9, 7, 9, 2, 2, 4, 5, 1, 2, 3, 9), 6, prebuilt=True),
]
PLAIN = [arrival(0, (3, 1, 4, 1, 5), 9), arrival(0, (9, 2, 6), 9), arrival(3, (5, 3), 6)]


def setup_of(name: str, device: str = "sim") -> Setup:
    row = preset(name)
    options = {"fences": row.chosen(), **row.engine}
    return Setup(row.worker, device=device, max_running_requests=ROWS, max_context=CONTEXT, options=options)


def engine_of(name: str, device: str = "sim") -> Scheduler:
    torch.set_num_threads(1)
    return build(setup_of(name, device)).scheduler


_prefilled: dict[tuple[str, str, int], Mapping[Arrival, Prebuilt]] = {}


def prefilled(scheduler: Scheduler, load: Sequence[Arrival]) -> Mapping[Arrival, Prebuilt]:
    """The same prefills for every engine with the same worker."""
    key = type(scheduler.worker).__name__, scheduler.device, id(load)
    if key not in _prefilled:
        _prefilled[key] = prefilled_blocking(scheduler, load)
    return _prefilled[key]


@cache
def oracle(device: str = "cpu") -> Qwen3:
    """The target of all these engines."""
    found: Qwen3 = oracle_target(Setup("plain"), device)
    return found


def wrong_requests(played: Played) -> list[int]:
    """Requests with a token that the target does not like best."""
    return [req.rid for req in played.reqs if judge_greedy(oracle(), req.prompt_ids, req.output_ids).wrong]


def recorded(scheduler: Scheduler, load: Sequence[Arrival]) -> Recording:
    """A load as it runs in steady state, with the names that the engine's text has."""
    given = prefilled(scheduler, load)
    play(scheduler, load, prebuilt=given)
    with record(scheduler.device) as recording:
        for lane in ("schedule", "forward", "copy", "plan"):
            recording.name(getattr(scheduler.streams, f"{lane}_stream"), lane)
        recording.name(scheduler.prebuilt.agent.kv_transfer_stream, "kv transfer")
        relay = scheduler.future_map
        recording.name(relay.publish_ready, "publish_ready")
        recording.name(relay.new_seq_lens_buf, "new_seq_lens_buf")
        recording.name(relay.output_tokens_buf, "output_tokens_buf")
        for name, rows in relay.extras_buf.items():
            recording.name(rows, name)
        recording.name(scheduler.memory.req_to_token_pool.req_to_token, "req_to_token")
        for name, pool in scheduler.prebuilt.agent.pools.items():
            recording.name(pool.k[0], f"KV of {name}")
        play(scheduler, load, prebuilt=given)
    return recording


@cache
def report(name: str) -> Report:
    """What the checker finds in a recorded run of a preset."""
    recording = recorded(engine_of(name), SEEDED)
    assert recording.widened == ()
    return check(recording.program())


def races(name: str) -> set[tuple[str, str]]:
    """Kinds and buffers of the races of a preset."""
    return {(str(race.kind), race.bytes.buf) for race in report(name).races}
