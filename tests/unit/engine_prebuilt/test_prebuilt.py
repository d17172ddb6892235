"""Requests whose prefill ran elsewhere: brought, seeded, decoded; and everything that they held comes back."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.engine.errors import EngineError
from refimpl.engine.forward_mode import ForwardMode
from refimpl.engine.kv_transfer import KVTransferAgent, Prebuilt, Transfer
from refimpl.engine.request import FinishReason, Req, SamplingParams
from refimpl.engine.scheduler import Scheduler
from refimpl.fences import Fences, Lengths, history
from refimpl.lessons.lossless.load import Arrival
from refimpl.lessons.lossless.oracle import judge_greedy
from refimpl.lessons.lossless.play import Played, check_idle_blocking, play, prefilled_blocking
from refimpl.lessons.lossless.setups import VARIANTS, WORKERS, Setup, build, oracle_target
from refimpl.order import check
from refimpl.program import Verdict
from refimpl.record import record

CONTEXT = 24


def _arrival(turn: int, prompt: Sequence[int], tokens: int, prebuilt: bool = True, **more: Any) -> Arrival:
    params = SamplingParams(max_new_tokens=tokens, ignore_eos=True, **more)
    return Arrival(turn, tuple(prompt), params, prebuilt=prebuilt)


LOAD = [
    _arrival(0, (5, 3, 8, 9, 7, 9, 3, 2, 3, 8), 9),
    _arrival(0, (3, 1, 4, 1, 5), 4, prebuilt=False),
    _arrival(0, (9, 2, 6), 12, prebuilt=False),
    _arrival(1, (8, 9, 7, 9), 5),
    _arrival(1, (2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4), 1),
    _arrival(2, (2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4), 12),
]


def _setup(worker: str, variant: str = "overlap", **options: Any) -> Setup:
    return Setup(worker, variant, max_running_requests=2, max_context=CONTEXT, options=options)


def _wrong(setup: Setup, played: Played) -> list[int]:
    target = oracle_target(setup)
    greedy = [req for req in played.reqs if req.params.greedy]
    return [req.rid for req in greedy if judge_greedy(target, req.prompt_ids, req.output_ids).wrong]


@pytest.mark.parametrize(
    ("worker", "variant"),
    [*((worker, "overlap") for worker in WORKERS), *(("dflash", name) for name in VARIANTS if name != "overlap")],
)
def test_prebuilt_requests_decode_to_the_text_of_the_target(worker: str, variant: str) -> None:
    setup = _setup(worker, variant)
    scheduler = build(setup).scheduler
    given = prefilled_blocking(scheduler, LOAD)
    dev = devices.sim()
    assert _wrong(setup, play(scheduler, LOAD, prebuilt=given)) == []
    with dev.schedule(dev.Adversary(seed=7)):
        assert _wrong(setup, play(scheduler, LOAD, prebuilt=given)) == []


def test_where_slots_run_out_requests_that_wait_for_a_row_give_theirs_back() -> None:
    scheduler = build(_setup("plain", num_slots=CONTEXT + 4)).scheduler
    given_back = list[bool]()
    give_back = scheduler.prebuilt.give_back_blocking

    def noting() -> bool:
        given_back.append(give_back())
        return given_back[-1]

    scheduler.prebuilt.give_back_blocking = noting  # type: ignore[method-assign]
    load = [
        _arrival(0, (3, 1, 4, 1, 5), 14, prebuilt=False),
        _arrival(0, (3, 1), 14, prebuilt=False),
        _arrival(1, (5, 3, 8, 9, 7, 9), 6),
    ]
    assert _wrong(_setup("plain"), play(scheduler, load)) == []
    assert given_back.count(True) == 1


def test_the_first_token_is_told_at_once_and_a_request_that_it_ends_runs_no_forward() -> None:
    scheduler = build(_setup("dflash")).scheduler
    launched = list[ForwardMode]()
    generate = scheduler.worker.forward_batch_generation

    def noting(batch: Any, on_publish: Any) -> Any:
        launched.append(batch.forward_mode)
        return generate(batch, on_publish)

    scheduler.worker.forward_batch_generation = noting  # type: ignore[method-assign]
    load = [_arrival(0, (8, 9, 7, 9), 1)]
    played = play(scheduler, load)
    assert [len(req.output_ids) for req in played.reqs] == [1]
    assert launched == []
    play(scheduler, [_arrival(0, (8, 9, 7, 9), 3)])
    assert set(launched) == {ForwardMode.DECODE}


@pytest.mark.parametrize("turns", range(5))
def test_a_request_that_is_aborted_on_the_way_gives_everything_back(turns: int) -> None:
    scheduler = build(_setup("eagle")).scheduler
    load = [*LOAD[:3], *(replace(one, abort_after=turns) for one in LOAD[3:])]
    given, dev = prefilled_blocking(scheduler, load), devices.sim()
    for seed in range(3):
        with dev.schedule(dev.Adversary(seed=seed)):
            played = play(scheduler, load, prebuilt=given)
        assert all(req.finish_reason in (FinishReason.ABORT, FinishReason.LENGTH) for req in played.reqs)


def test_an_engine_that_starts_over_forgets_transfers() -> None:
    scheduler = build(_setup("eagle")).scheduler
    for arrival, prebuilt in prefilled_blocking(scheduler, LOAD).items():
        scheduler.prebuilt.add(Req(0, list(arrival.prompt_ids), arrival.params), prebuilt)
    next(scheduler.event_loop_overlap())
    scheduler.start_over_blocking()
    assert not scheduler.has_work()
    check_idle_blocking(scheduler)


def test_sampled_requests_are_sampled_with_their_own_parameters() -> None:
    load = [_arrival(0, (8, 9, 7, 9), 8, temperature=1.0, seed=seed) for seed in (1, 2, 1)]
    load = [replace(one, turn=turn) for turn, one in enumerate(load)]
    scheduler = build(_setup("plain")).scheduler
    texts = [req.output_ids for req in play(scheduler, load).reqs]
    here = [req.output_ids for req in play(scheduler, [replace(one, prebuilt=False) for one in load]).reqs]
    assert texts == here
    assert texts[0] == texts[2] != texts[1]


def _recorded(change: Callable[[Any], None] = lambda patch: None) -> Verdict:
    scheduler = build(_setup("eagle")).scheduler
    # One of them arrives while the redundant forward of the first request is in flight.
    load = [
        _arrival(0, (3, 1, 4, 1, 5), 4, prebuilt=False),
        _arrival(0, (9, 2, 6), 12, prebuilt=False),
        *(_arrival(turn, (8, 9, 7, 9), 2) for turn in range(2, 6)),
    ]
    given = prefilled_blocking(scheduler, load)
    with pytest.MonkeyPatch.context() as patch:
        change(patch)
        play(scheduler, load, prebuilt=given)
        with record("sim") as recording:
            recording.name(scheduler.prebuilt.agent.kv_transfer_stream, "kv transfer")
            play(scheduler, load, prebuilt=given)
    assert recording.widened == ()
    return check(recording.program()).verdict


def test_the_agent_writes_slots_behind_the_redundant_forward_of_their_last_owner_since_the_host_asks() -> None:
    assert _recorded() is Verdict.OK


def test_an_agent_that_does_not_ask_races_with_it() -> None:
    def once_slots_are_known(transfer: Transfer) -> bool:
        transfer.allocated.synchronize()
        return transfer.done is None

    def at_once(patch: Any) -> None:
        patch.setattr(Transfer, "may_begin", once_slots_are_known)

    assert _recorded(at_once) is Verdict.RACE


def test_kv_that_is_used_before_it_has_arrived_races_with_the_agent() -> None:
    def not_awaited(patch: Any) -> None:
        patch.setattr(Transfer, "has_ended", lambda transfer: transfer.done is not None)

    assert _recorded(not_awaited) is Verdict.RACE


def test_the_streams_of_the_engine_do_not_know_of_the_agents() -> None:
    scheduler = build(_setup("dflash")).scheduler
    agent = scheduler.prebuilt.agent
    assert "kv_transfer_stream" not in vars(agent)
    assert agent.kv_transfer_stream not in vars(scheduler.streams).values()


@pytest.fixture(scope="module")
def prefilled() -> tuple[Scheduler, Prebuilt]:
    scheduler = build(_setup("eagle")).scheduler
    return scheduler, prefilled_blocking(scheduler, LOAD[:1])[LOAD[0]]


def _request(tokens: int, max_new_tokens: int = 4) -> Req:
    return Req(0, list(range(1, tokens + 1)), SamplingParams(max_new_tokens=max_new_tokens))


def test_what_a_prefill_of_another_prompt_left_is_refused(prefilled: tuple[Scheduler, Prebuilt]) -> None:
    scheduler, prebuilt = prefilled
    with pytest.raises(EngineError, match="3 prompt tokens, and its prebuilt KV 10"):
        scheduler.prebuilt.add(_request(3), prebuilt)


def test_kv_of_other_pools_is_refused(prefilled: tuple[Scheduler, Prebuilt]) -> None:
    scheduler, prebuilt = prefilled
    with pytest.raises(EngineError, match="brings KV of target, and this engine keeps KV of target, draft"):
        scheduler.prebuilt.add(_request(10), replace(prebuilt, kv={"target": prebuilt.kv["target"]}))


def test_a_request_that_would_not_fit_to_its_end_is_refused(prefilled: tuple[Scheduler, Prebuilt]) -> None:
    scheduler, prebuilt = prefilled
    kv = {name: kv[:, :, :1].expand(-1, -1, CONTEXT, -1, -1) for name, kv in prebuilt.kv.items()}
    with pytest.raises(EngineError, match=f"may grow to {CONTEXT + 4} tokens, and there is room for {CONTEXT}"):
        scheduler.prebuilt.add(_request(CONTEXT), replace(prebuilt, seq_len=CONTEXT, kv=kv))
    with pytest.raises(EngineError, match=f"may grow to {CONTEXT + 1} tokens"):
        scheduler.prebuilt.add(_request(10, CONTEXT - 9), prebuilt)


def test_an_engine_whose_draft_input_carries_the_lengths_has_nothing_to_seed() -> None:
    fences = next(row.chosen() for row in history() if row.chosen().lengths is Lengths.DRAFT_INPUT)
    scheduler = build(_setup("eagle", fences=fences)).scheduler
    with pytest.raises(EngineError, match="no relay of lengths to seed: use lengths='future_map'"):
        scheduler.prebuilt.add(_request(10), prefilled_blocking(scheduler, LOAD[:1])[LOAD[0]])
    assert Fences().lengths is Lengths.FUTURE_MAP


def test_kv_of_another_number_of_tokens_than_it_says_is_refused(prefilled: tuple[Scheduler, Prebuilt]) -> None:
    with pytest.raises(ValueError, match=r"kv\['target'\] has the shape \[2, 2, 10, 1, 16\]: give \[2, layers, 9"):
        replace(prefilled[1], seq_len=9)
    with pytest.raises(ValueError, match=r"extras\['hidden_states'\] has 2 rows"):
        replace(prefilled[1], extras={"hidden_states": torch.zeros(2, 32)})


def test_a_kv_transfer_is_one_op_of_the_agents_lane() -> None:
    scheduler = build(_setup("dflash")).scheduler
    load = LOAD[:1]
    given = prefilled_blocking(scheduler, load)
    with record("sim") as recording:
        assert isinstance(scheduler.prebuilt.agent, KVTransferAgent)
        recording.name(scheduler.prebuilt.agent.kv_transfer_stream, "kv transfer")
        play(scheduler, load, prebuilt=given)
    launches = [op for op in recording.ops if op.op == "launch" and getattr(op, "stream", "") == "kv transfer"]
    assert [getattr(op, "name", "") for op in launches] == ["kv transfer"]
