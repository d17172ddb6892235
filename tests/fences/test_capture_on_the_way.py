"""Graphs of a new sampling mode are captured while others run: what streams still read is not taken for it."""

from typing import Any

import pytest
import torch

from refimpl.engine.request import SamplingParams
from refimpl.engine.scheduler import Scheduler
from refimpl.fences import preset
from refimpl.lessons.lossless.load import Arrival
from refimpl.lessons.lossless.play import play
from refimpl.lessons.lossless.setups import Setup, build
from refimpl.model.sampling import SamplingMode
from refimpl.order import check
from refimpl.program import Verdict
from refimpl.record import record


def _arrival(prompt: tuple[int, ...], tokens: int, **params: Any) -> Arrival:
    return Arrival(0, prompt, SamplingParams(max_new_tokens=tokens, ignore_eos=True, **params))


# The first one ends, and in that turn the third one, the first that is sampled, is prefilled into its row.
LOAD = [_arrival((3, 5, 7), 3), _arrival((2, 9, 4, 8), 16), _arrival((6, 1, 5), 3, temperature=1.0)]


def built(row: str) -> Scheduler:
    torch.set_num_threads(1)
    options: dict[str, Any] = {"fences": preset(row).chosen(), **preset(row).engine}
    return build(Setup("dflash", max_running_requests=2, max_context=32, options=options)).scheduler


def verdict(scheduler: Scheduler) -> Verdict:
    with record("sim") as recording:
        play(scheduler, LOAD)
    assert SamplingMode.SAMPLED in scheduler._captured
    return check(recording.program()).verdict


@pytest.mark.parametrize("row", ["dflash-wait", "dflash-synchronize", "latest"])
def test_a_capture_on_the_way_races_with_nothing(row: str) -> None:
    assert verdict(built(row)) is Verdict.OK


def test_without_waiting_first_it_takes_memory_that_schedule_still_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = built("dflash-wait")

    def at_once(mode: SamplingMode) -> None:
        if mode not in scheduler._captured:
            scheduler.worker.capture_blocking(mode)
            scheduler._captured.add(mode)

    monkeypatch.setattr(scheduler, "capture_blocking", at_once)
    assert verdict(scheduler) is Verdict.RACE
