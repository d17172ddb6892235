"""What cannot be served is refused in one sentence, before anything of it was started; the engine works afterwards."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from refimpl.engine import Engine, EngineError, FinishReason
from refimpl.lessons.lossless.play import check_idle_blocking
from refimpl.model.registry import WEIGHTS

SIZES = {"max_running_requests": 2, "max_context": 32}
PROMPT = [5, 6, 7]


@pytest.fixture(scope="module")
def engine() -> Engine:
    torch.set_num_threads(1)
    return Engine("nano", "dflash", "sim", **SIZES)


@pytest.fixture
def wanted(engine: Engine) -> list[int]:
    return engine.generate(PROMPT, max_new_tokens=6)[0].token_ids


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(EngineError) as raised:
        call()
    words = str(raised.value)
    assert "\n" not in words
    assert len(words) < 400
    return words


@pytest.mark.parametrize(
    ("prompts", "params", "words"),
    [
        ([[1] * 40], {}, "prompt 0 has 40 tokens"),
        ([PROMPT, [1] * 32], {}, "prompt 1 has 32 tokens"),
        ([], {}, "no prompts"),
        ([PROMPT, []], {}, "prompt 1 has no tokens"),
        ([[1, 2, 4096]], {}, "prompt 0 holds 4096"),
        ([[1, -2]], {}, "prompt 0 holds -2"),
        ([PROMPT], {"temperature": -1.0}, "temperature=-1.0"),
        ([PROMPT], {"temperature": float("nan")}, "temperature=nan"),
        ([PROMPT], {"top_p": 0.0}, "top_p=0.0"),
        ([PROMPT], {"top_k": -1}, "top_k=-1"),
        ([PROMPT], {"max_new_tokens": 0}, "max_new_tokens=0"),
        ([PROMPT], {"seed": -1}, "seed=-1"),
        ([PROMPT], {"beams": 4}, "unknown parameter 'beams'"),
        ("half a \ud800 character", {}, "prompt 0 holds '\\ud800'"),
        (b"bytes", {}, "prompts: b'bytes' is neither text nor"),
        (None, {}, "prompts: None is neither"),
        (5, {}, "prompts: 5 is neither"),
        ({"a": 1}, {}, "prompts: {'a': 1} is neither"),
        ([PROMPT, 5], {}, "prompt 1: 5 is neither"),
        ([PROMPT, None], {}, "prompt 1: None is neither"),
        ([[5, None]], {}, "prompt 0 holds None"),
        ([[5, True]], {}, "prompt 0 holds True"),
        ([[5, 1.0]], {}, "prompt 0 holds 1.0"),
        ([[5, 10**100]], {}, "prompt 0 holds 1000"),
        ([torch.tensor([5.0])], {}, "prompt 0 holds 5.0"),
        ([PROMPT], {"temperature": "hot"}, "temperature='hot': use a number"),
        ([PROMPT], {"temperature": None}, "temperature=None"),
        ([PROMPT], {"temperature": 10**400}, "temperature=1000"),
        ([PROMPT], {"top_p": True}, "top_p=True"),
        ([PROMPT], {"top_k": 2.5}, "top_k=2.5: use a whole number"),
        ([PROMPT], {"max_new_tokens": 1.5}, "max_new_tokens=1.5"),
        ([PROMPT], {"max_new_tokens": float("inf")}, "max_new_tokens=inf"),
        ([PROMPT], {"seed": "a"}, "seed='a'"),
        ([PROMPT], {"ignore_eos": "no"}, "ignore_eos='no': use True or False"),
    ],
)
def test_a_bad_request_is_refused_and_the_engine_works_afterwards(
    engine: Engine, wanted: list[int], prompts: Any, params: dict[str, Any], words: str
) -> None:
    assert words in refusal(lambda: engine.generate(prompts, **params))
    assert words in refusal(lambda: engine.stream(prompts, **params))
    check_idle_blocking(engine.scheduler)
    assert engine.generate(PROMPT, max_new_tokens=6)[0].token_ids == wanted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"draft": "medusa"}, "unknown draft 'medusa'"),
        ({"target": "huge"}, "unknown target 'huge'"),
        ({"device": "tpu"}, "device 'tpu' is not known"),
        ({"max_running_requests": 0}, "max_running_requests=0"),
        ({"max_context": 0}, "max_context=0"),
        ({"max_context": 10_000}, "max_context=10000"),
        ({"num_slots": 9}, "num_slots=9"),
        ({"num_slots": -1}, "num_slots=-1"),
        ({"page_size": 16}, "unknown option 'page_size'"),
        ({"target": None}, "unknown target None"),
        ({"draft": ["eagle"]}, "unknown draft ['eagle']"),
        ({"device": ""}, "device '' is not known"),
        ({"device": "sim:0"}, "device='sim:0'"),
        ({"dtype": "float32"}, "dtype='float32'"),
        ({"dtype": torch.int8}, "dtype=torch.int8"),
        ({"weights": 5}, "weights=5"),
        ({"weights": "/dev/null"}, "/dev/null/nano/config.json"),
        ({"forced": 4}, "forced=4"),
        ({"fences": "none"}, "fences='none'"),
        ({"overlap": "no"}, "overlap='no': use True or False"),
        ({"max_context": "32"}, "max_context='32': use a whole number"),
        ({"max_running_requests": True}, "max_running_requests=True"),
        ({"max_running_requests": 1.5}, "max_running_requests=1.5"),
        ({"num_slots": 10**30}, "num_slots=10000"),
        ({"sliding_window": 0}, "sliding_window=0"),
        ({"sliding_window": 10**30}, "sliding_window=10000"),
        ({"draft": "eagle", "draft_steps": 8}, "draft_steps=8"),
        ({"draft": "eagle", "draft_topk": 1000}, "12000 tokens ahead of its text"),
        ({"draft_topk": 2}, "draft_topk=2: DFLASH drafts a block in one forward, so leave it out"),
        ({"draft_steps": 3}, "draft_steps=3: DFLASH drafts a block in one forward"),
        ({"draft": "none", "draft_steps": 3}, "draft_steps=3: without a draft nothing is drafted"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    assert words in refusal(
        lambda: Engine(**{"target": "nano", "draft": "dflash", "device": "sim", **SIZES, **options})
    )


@pytest.mark.parametrize("spoil", ["cut short", "of another model", "missing"])
def test_weights_that_do_not_fit_are_refused(spoil: str, tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    (weights / "nano").mkdir(parents=True)
    for file in [WEIGHTS / "tokenizer.json", *(WEIGHTS / "nano").iterdir()]:
        shutil.copy(file, weights / file.relative_to(WEIGHTS))
    draft = weights / "nano" / "dflash.safetensors"
    if spoil == "cut short":
        draft.write_bytes(draft.read_bytes()[:1000])
    elif spoil == "of another model":
        shutil.copy(weights / "nano" / "eagle.safetensors", draft)
    else:
        draft.unlink()
    assert "dflash.safetensors" in refusal(lambda: Engine("nano", "dflash", "sim", weights=weights, **SIZES))


def test_more_text_than_slots_waits_or_ends_and_never_stops_the_engine(wanted: list[int]) -> None:
    few = Engine("nano", "dflash", "sim", **SIZES, num_slots=40)
    found = few.generate([PROMPT] * 5, max_new_tokens=100, ignore_eos=True)
    assert {completion.finish_reason for completion in found} == {FinishReason.LENGTH}
    room = 40 - few.scheduler.memory.reserve - len(PROMPT)
    assert [len(completion.token_ids) for completion in found] == [min(room, 32 - len(PROMPT))] * 5
    check_idle_blocking(few.scheduler)
    assert few.generate(PROMPT, max_new_tokens=6)[0].token_ids == wanted


@pytest.mark.parametrize(
    "prompts",
    [
        tuple(PROMPT),
        range(5, 8),
        np.array(PROMPT),
        np.array(PROMPT, dtype=np.uint8),
        torch.tensor(PROMPT),
        [np.int64(5), 6, 7],
        torch.tensor([PROMPT]),
        (tokens for tokens in [PROMPT]),
        [(token for token in PROMPT)],
    ],
    ids=lambda prompts: type(prompts).__name__,
)
def test_whatever_lists_tokens_is_a_prompt(engine: Engine, wanted: list[int], prompts: Any) -> None:
    assert [one.token_ids for one in engine.generate(prompts, max_new_tokens=6)] == [wanted]


@pytest.mark.parametrize("prompt", ["", "\0", "<eos><bos><mask>", "\N{FAMILY}\N{ZERO WIDTH JOINER}\u0301"])
def test_any_text_is_a_prompt(engine: Engine, prompt: str) -> None:
    [completion] = engine.generate(prompt, max_new_tokens=3, ignore_eos=True)
    assert len(completion.token_ids) == 3


@pytest.mark.parametrize("params", [{"top_k": 1}, {"top_p": 1e-300}, {"temperature": 1e-4}])
def test_a_choice_of_one_token_is_greedy(engine: Engine, wanted: list[int], params: dict[str, Any]) -> None:
    assert engine.generate(PROMPT, **{"temperature": 1.0, "max_new_tokens": 6, **params})[0].token_ids == wanted


def test_a_size_that_no_prefill_reaches_takes_no_memory(wanted: list[int]) -> None:
    vast = Engine("nano", "none", "sim", **SIZES, max_prefill_tokens=2**31 - 1)
    assert vast.generate(PROMPT, max_new_tokens=6)[0].token_ids == wanted


def test_a_stream_that_is_left_early_gives_everything_back(engine: Engine, wanted: list[int]) -> None:
    pieces = engine.stream([PROMPT, [9, 8]], max_new_tokens=20, ignore_eos=True)
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    check_idle_blocking(engine.scheduler)
    assert engine.generate(PROMPT, max_new_tokens=6)[0].token_ids == wanted
