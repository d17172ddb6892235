"""Greedy decoding is lossless: every token of every worker, option, load and order is the oracle's own choice."""

from collections.abc import Iterator
from functools import cache

import pytest
import torch

from refimpl import device as devices
from refimpl.engine.request import FinishReason, Req, SamplingParams
from refimpl.lessons.lossless.campaign import Judge, RunReport, spread, wrong_end
from refimpl.lessons.lossless.load import LoadShape
from refimpl.lessons.lossless.models import TINY
from refimpl.lessons.lossless.oracle import judge_greedy, next_logits
from refimpl.lessons.lossless.setups import WORKERS, Setup, build, oracle_target
from refimpl.model.shapes import VOCAB_SIZE

SEEDS = range(20)
SHAPE = LoadShape(requests=8, vocabulary=40)
RUNS = [(setup, seed) for setup, seeds in spread(WORKERS, SEEDS) for seed in seeds]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Operators this small only wait for a second thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def judge(worker: str, variant: str, max_running_requests: int = 5) -> Judge:
    return Judge(build(Setup(worker, variant, max_running_requests=max_running_requests)))


@cache
def report(worker: str, variant: str, seed: int) -> RunReport:
    return judge(worker, variant).run(SHAPE, seed)


@pytest.mark.parametrize(
    ("worker", "variant", "seed"),
    [pytest.param(s.worker, s.variant, seed, id=f"{s.worker}-{s.variant}-{seed}") for s, seed in RUNS],
)
def test_in_any_order_every_token_is_the_one_that_the_target_likes_best(worker: str, variant: str, seed: int) -> None:
    found = report(worker, variant, seed)
    assert found.wrong == (), f"replay with {found.schedule}"
    assert found.tokens > 0
    assert found.near_ties == 0


@pytest.mark.parametrize("worker", [worker for worker in WORKERS if worker != "plain"])
def test_drafts_are_accepted_in_part_so_that_the_runs_above_say_something(worker: str) -> None:
    found = [report(s.worker, s.variant, seed) for s, seed in RUNS if s.worker == worker]
    emitted, verifies = sum(run.emitted for run in found), sum(run.verifies for run in found)
    assert 1.3 * verifies < emitted < 3 * verifies


@pytest.mark.parametrize("worker", WORKERS)
def test_requests_are_retracted_and_come_back_so_that_the_runs_above_say_something(worker: str) -> None:
    few = [report(s.worker, s.variant, seed) for s, seed in RUNS if s.worker == worker and s.variant == "few slots"]
    assert sum(run.retracted for run in few) > 0


@pytest.mark.parametrize(("requests", "variant"), [(1, "overlap"), (33, "overlap"), (64, "overlap"), (64, "normal")])
@pytest.mark.parametrize("worker", WORKERS)
def test_a_batch_of_any_size_decodes_as_one_request_alone(worker: str, requests: int, variant: str) -> None:
    shape = LoadShape(requests=requests, vocabulary=40, turns=0, max_new=10, aborted=0)
    found = judge(worker, variant, max_running_requests=64).run(shape, seed=requests)
    assert (found.wrong, found.near_ties) == ((), 0)


@pytest.mark.parametrize("variant", ["overlap", "all at once"])
@pytest.mark.parametrize("worker", WORKERS)
def test_trained_models_of_a_real_vocabulary_decode_as_the_oracle_does(worker: str, variant: str) -> None:
    shape = LoadShape(requests=6, vocabulary=VOCAB_SIZE - 8, max_prompt=24)
    found = Judge(build(Setup(worker, variant, models="nano", max_context=48))).run(shape, seed=0)
    assert found.wrong == ()
    assert found.near_ties <= 1
    assert worker == "plain" or found.emitted > found.verifies


def test_the_judge_finds_what_a_lost_cache_entry_does_to_the_text() -> None:
    devices.sim()
    wrecked = judge("plain", "overlap")
    pool = wrecked.built.scheduler.worker.target.resources.kv_pool  # type: ignore[attr-defined]

    def wreck(turn: int) -> None:
        pool.k[0][:20].zero_()

    shape = LoadShape(requests=6, vocabulary=40, turns=0, aborted=0)
    assert wrecked.run(shape, 0).wrong == ()
    assert wrecked.run(shape, 0, lambda scheduler, seed: wreck).wrong


def test_the_oracle_finds_one_wrong_token_and_goes_on_behind_it() -> None:
    target = oracle_target(Setup("plain"))
    prompt, output = [3, 1, 4], list[int]()
    for _ in range(6):
        output.append(int(next_logits(target, [*prompt, *output])[-1].argmax()))
    assert judge_greedy(target, prompt, output).wrong == ()
    worst = int(next_logits(target, [*prompt, *output[:2]])[-1, : TINY.mask_token_id].argmin())
    wrong = [*output[:2], worst]
    for _ in range(3):
        wrong.append(int(next_logits(target, [*prompt, *wrong])[-1].argmax()))
    judged = judge_greedy(target, prompt, wrong)
    assert (judged.wrong, judged.tokens) == ((2,), 6)


def test_a_tie_is_excused_within_epsilon_and_only_there() -> None:
    target = oracle_target(Setup("plain"))
    best, second = next_logits(target, [3, 1, 4])[-1].topk(2).indices.tolist()
    gap = judge_greedy(target, [3, 1, 4], [second]).furthest
    assert judge_greedy(target, [3, 1, 4], [best], epsilon=0.0).furthest == 0
    excused = judge_greedy(target, [3, 1, 4], [second], epsilon=gap)
    assert (excused.near_ties, excused.wrong) == (1, ())
    refused = judge_greedy(target, [3, 1, 4], [second], epsilon=0.99 * gap)
    assert (refused.near_ties, refused.wrong) == (0, (0,))


@pytest.mark.parametrize(
    ("output", "reason", "right"),
    [
        ([1, 2, 3], FinishReason.LENGTH, True),
        ([1, 2], FinishReason.LENGTH, False),
        ([1, TINY.eos_token_id], FinishReason.STOP, True),
        ([TINY.eos_token_id, 1], FinishReason.STOP, False),
        ([1, TINY.eos_token_id, 3], FinishReason.LENGTH, False),
        ([1, 2, 3, 4], FinishReason.LENGTH, False),
        ([1, 2], FinishReason.ABORT, True),
        ([1, 2], None, False),
    ],
)
def test_a_request_ends_where_its_text_or_its_length_does(
    output: list[int], reason: FinishReason | None, right: bool
) -> None:
    req = Req(0, [1], SamplingParams(max_new_tokens=3), output_ids=output, finish_reason=reason)
    assert (wrong_end(req, TINY.eos_token_id) is None) is right
