"""transformers' loops as they are timed: on the CPU, on the memory of our random nano weights."""

from typing import Any

import pytest
import torch

from refimpl.lessons.bench_engine import peers
from refimpl.lessons.bench_engine.workload import Workload
from refimpl.lessons.peers.clock import StepClock
from refimpl.lessons.peers.continuous import GenerateBatch, Padding, Settings
from refimpl.lessons.peers.generate import greedy, greedy_with_dflash
from refimpl.lessons.peers.transformers_models import dflash_to_transformers, target_to_transformers
from refimpl.model.dflash import DFlash
from refimpl.model.qwen3 import Qwen3
from refimpl.model.registry import random_draft, random_target
from refimpl.model.shapes import FAMILIES

WORK = Workload(3, prompt_tokens=8, new_tokens=24)


@pytest.fixture(scope="module")
def target() -> Qwen3:
    return random_target(FAMILIES["nano"].target)


@pytest.fixture(scope="module")
def model(target: Qwen3) -> Any:
    return target_to_transformers(target)


@pytest.fixture
def prompts(target: Qwen3) -> list[list[int]]:
    return WORK.prompts(target.config.vocab_size)


@pytest.mark.parametrize("padding", Padding)
def test_generate_batch_decodes_what_generate_does(
    target: Qwen3, model: Any, prompts: list[list[int]], padding: Padding
) -> None:
    control = greedy(model, prompts, WORK.new_tokens)
    peer = GenerateBatch(
        target_to_transformers(target), 3, WORK.prompt_tokens, WORK.new_tokens, Settings(padding, False, False)
    )
    try:
        for _ in range(2):
            run = peer.run(prompts)
            assert run.tokens == control.tokens
            assert run.accept_len == 1.0
            assert len(run.steps_ms) > WORK.new_tokens // 2
    finally:
        peer.close()


def test_dflash_cycles_are_counted_once_each(target: Qwen3, model: Any, prompts: list[list[int]]) -> None:
    draft = random_draft(FAMILIES["nano"].drafts()["dflash"], target)
    assert isinstance(draft, DFlash)
    run = greedy_with_dflash(model, dflash_to_transformers(draft), prompts[0], WORK.new_tokens)
    assert run.tokens == greedy(model, prompts[:1], WORK.new_tokens).tokens
    assert len(run.accept_lens) == len(run.steps_ms)
    assert 1 <= run.accept_len <= 8


def test_requests_too_short_to_decode_together_are_refused(target: Qwen3, prompts: list[list[int]]) -> None:
    peer = GenerateBatch(
        target_to_transformers(target), 3, WORK.prompt_tokens, 3, Settings(Padding.FITTED, False, False)
    )
    try:
        with pytest.raises(RuntimeError, match="ask for more"):
            peer.run(prompts)
    finally:
        peer.close()


def test_every_setting_of_generate_batch_is_a_loop_of_its_own(target: Qwen3, prompts: list[list[int]]) -> None:
    batched = peers.Batched(lambda: target_to_transformers(target), prompts, WORK.new_tokens, overlapped=False)
    try:
        loops = batched.loops()
        assert list(loops) == [peers.BATCH_ITS_OWN, peers.BATCH_FITTED]
        for run in loops.values():
            assert run().accept_len == 1.0
    finally:
        batched.close()


def test_a_clock_never_stops_a_loop_and_tells_steps_apart() -> None:
    clock = StepClock()
    for length in (5, 8, 8, 9, 9, 12):
        assert not clock(torch.zeros(1, length), None).any()
    assert clock.kept().lengths == [8, 9, 12]
    assert clock.kept().accept_lens(0) == [1, 3]
    assert len(clock.steps_ms(1)) == 4
