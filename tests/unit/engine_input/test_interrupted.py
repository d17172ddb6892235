"""After Ctrl-C, or an error in the middle of a turn, an engine has all its memory back and decodes as before."""

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from refimpl.engine import Engine, FinishReason
from refimpl.engine.interrupts import HeldCtrlC
from refimpl.fences import WarBarrier
from refimpl.lessons.lossless.play import check_idle_blocking

PROMPTS = [[5, 6, 7], [9, 8], [1, 2, 3, 4]]
PARAMS: dict[str, Any] = {"max_new_tokens": 8, "ignore_eos": True}
WINDOW = 4


@pytest.fixture(scope="module", params=[None, WINDOW], ids=["full", "sliding"])
def engine(request: pytest.FixtureRequest) -> Engine:
    torch.set_num_threads(1)
    sizes = {"max_running_requests": 2, "max_context": 32, "plan_stream": True}
    return Engine("nano", "dflash", "sim", sliding_window=request.param, **sizes)


def tokens(engine: Engine) -> list[list[int]]:
    return [one.token_ids for one in engine.generate(PROMPTS, **PARAMS)]


@pytest.fixture
def wanted(engine: Engine) -> list[list[int]]:
    return tokens(engine)


def fails_at(call: int, before: Callable[..., Any], then: type[BaseException]) -> Callable[..., Any]:
    """The function, which at its so-and-so-manieth call does its work and raises."""
    count = itertools.count(1)

    def failing(*args: Any) -> Any:
        result = before(*args)
        if next(count) == call:
            raise then
        return result

    return failing


@pytest.mark.parametrize("where", ["get_next_batch_to_run", "run_batch", "prepare_for_decode", "_apply_war_barrier"])
@pytest.mark.parametrize("call", [1, 3])
def test_an_error_within_a_turn_ends_all_requests_and_frees_everything(
    engine: Engine, wanted: list[list[int]], monkeypatch: pytest.MonkeyPatch, where: str, call: int
) -> None:
    other = engine.stream(PROMPTS[:1], **PARAMS)
    next(other)
    with monkeypatch.context() as patch:
        patch.setattr(engine.scheduler, where, fails_at(call, getattr(engine.scheduler, where), ZeroDivisionError))
        with pytest.raises(ZeroDivisionError):
            engine.generate(PROMPTS, **PARAMS)
    check_idle_blocking(engine.scheduler)
    *_, last = other
    assert last.completion is not None
    assert last.finish_reason is FinishReason.ABORT
    assert tokens(engine) == wanted
    check_idle_blocking(engine.scheduler)


def test_ctrl_c_within_a_turn_waits_for_its_end(
    engine: Engine, wanted: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[WarBarrier] = []
    scheduler = engine.scheduler
    run_batch, barrier = scheduler.run_batch, scheduler._apply_war_barrier

    def pressed(batch: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return run_batch(batch)

    monkeypatch.setattr(scheduler, "run_batch", pressed)
    monkeypatch.setattr(scheduler, "_apply_war_barrier", lambda place: turns.append(place) or barrier(place))
    with pytest.raises(KeyboardInterrupt):
        next(engine.stream(PROMPTS, **PARAMS))
    assert turns[:2] == [WarBarrier.LOOP_TOP, WarBarrier.AFTER_RUN_BATCH]
    monkeypatch.undo()
    check_idle_blocking(scheduler)
    assert tokens(engine) == wanted


def test_ctrl_c_ends_generate(engine: Engine, wanted: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    process = engine.scheduler.outputs.process_batch_result_blocking

    def pressed(*args: Any) -> None:
        process(*args)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(engine.scheduler.outputs, "process_batch_result_blocking", pressed)
    with pytest.raises(KeyboardInterrupt):
        engine.generate(PROMPTS, **PARAMS)
    monkeypatch.undo()
    check_idle_blocking(engine.scheduler)
    assert tokens(engine) == wanted


def test_the_second_ctrl_c_does_not_wait() -> None:
    reached = []

    def press_twice() -> None:
        with HeldCtrlC():
            signal.raise_signal(signal.SIGINT)
            reached.append("after the first")
            signal.raise_signal(signal.SIGINT)
            reached.append("after the second")

    with pytest.raises(KeyboardInterrupt):
        press_twice()
    assert reached == ["after the first"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_returns_is_called_once_for_each_ctrl_c() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        held = HeldCtrlC()
        with held, held:
            signal.raise_signal(signal.SIGINT)
            assert not heard
            held.deliver()
            assert len(heard) == 1
            signal.raise_signal(signal.SIGINT)
            assert len(heard) == 1
        assert len(heard) == 2
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_stream_that_is_collected_within_a_turn_ends_with_the_next(
    engine: Engine, wanted: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    cycle: list[Any] = [engine.stream(PROMPTS, **PARAMS)]
    next(cycle[0])
    cycle.append(cycle)
    del cycle
    run_batch = engine.scheduler.run_batch
    monkeypatch.setattr(engine.scheduler, "run_batch", lambda batch: gc.collect() and run_batch(batch))
    gc.disable()
    try:
        assert tokens(engine) == wanted
    finally:
        gc.enable()
    check_idle_blocking(engine.scheduler)


def test_streams_and_what_is_generated_within_them_do_not_mix(engine: Engine, wanted: list[list[int]]) -> None:
    streams = [engine.stream([prompt], **PARAMS) for prompt in PROMPTS]
    found: list[list[int]] = [[] for _ in PROMPTS]
    for pieces in itertools.zip_longest(*streams):
        assert tokens(engine) == wanted
        for ids, piece in zip(found, pieces, strict=True):
            ids += piece.token_ids if piece is not None else []
    assert found == wanted
    check_idle_blocking(engine.scheduler)


def test_threads_share_an_engine(engine: Engine, wanted: list[list[int]]) -> None:
    found: list[list[list[int]]] = []
    threads = [threading.Thread(target=lambda: found.append(tokens(engine))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 3
    check_idle_blocking(engine.scheduler)


def test_a_program_that_ends_within_a_stream_ends_quietly() -> None:
    program = (
        "from refimpl.engine import Engine\n"
        "engine = Engine('nano', 'none', 'sim', max_running_requests=1, max_context=32)\n"
        "stream = engine.stream([5, 6, 7], ignore_eos=True)\n"
        "next(stream)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
