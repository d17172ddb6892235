"""A run whose fences let it read garbage may fail on the device; the engines after it are none the worse."""

import pytest

from refimpl.engine import Engine
from refimpl.fences import preset

PROMPTS = ["def fib(n):", "class Queue:", "import os\n"]
SIZES = {"max_running_requests": 3, "max_context": 96}
UNFENCED = "25917-revert"


def texts() -> list[list[int]]:
    engine = Engine("nano", "eagle", "sim", **SIZES)
    return [list(done.token_ids) for done in engine.generate(PROMPTS, max_new_tokens=16)]


def test_engines_behind_a_fault_on_the_device_write_the_same_text() -> None:
    wanted = texts()
    faulty = Engine("nano", "eagle", "sim", fences=preset(UNFENCED).chosen(), **SIZES, **preset(UNFENCED).engine)
    with pytest.raises(RuntimeError, match="failed on stream"):
        faulty.generate(PROMPTS, max_new_tokens=16)
    assert texts() == wanted
