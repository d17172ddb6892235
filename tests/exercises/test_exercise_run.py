"""Stream code is judged by stalls where no adversary can order the device; on `sim` the stalls run in virtual time."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from refimpl import device
from refimpl.lessons.exercise_run import FIRST, WIDTH, Outcome, with_stalls
from refimpl.lessons.exercises.wait_or_synchronize import one_step
from refimpl.lessons.exercises.wait_or_synchronize_wrong import ONE_STEP

STEPS = 6
RIGHT = [[FIRST + step] * WIDTH for step in range(STEPS)]


def outcomes(answer: Callable[..., Any]) -> list[Outcome]:
    sim = device.get("sim")
    with sim.schedule(sim.Timed()):
        return [with_stalls(answer, seed, STEPS, "sim") for seed in range(10)]


def test_stalls_leave_a_right_answer_its_values_and_its_host() -> None:
    assert callable(one_step.right)
    assert outcomes(one_step.right) == [Outcome(RIGHT, None)] * 10


@pytest.mark.parametrize("name", ["no way back", "record before the write", "record on schedule", "write, then read"])
def test_stalls_bring_a_missing_edge_to_light(name: str) -> None:
    assert any(outcome.seen != RIGHT for outcome in outcomes(ONE_STEP[name].answer))


def test_stalls_bring_a_blocked_host_to_light() -> None:
    found = outcomes(ONE_STEP["synchronize"].answer)
    assert all(outcome.seen == RIGHT for outcome in found)
    assert any("ms while streams were stalled" in str(outcome.blocked) for outcome in found)


@pytest.mark.gpu
def test_stream_code_is_judged_on_the_gpu_of_its_process() -> None:
    names = ["no way back", "record before the write", "record on schedule", "synchronize", "one stream"]
    code = (
        "import torch; torch.cuda.init()\n"
        "from refimpl.lessons.exercises.wait_or_synchronize import one_step\n"
        "print(one_step.verdict(one_step.right))\n"
        f"for name in {names!r}: assert not one_step.verdict(one_step.wrong[name].answer).passed, name\n"
        "print(one_step.verdict(one_step.stub))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    right, stub = done.stdout.splitlines()
    assert right.startswith("Right: in 30 patterns of stalled streams on the GPU")
    assert stub.startswith("Not yet: ")
