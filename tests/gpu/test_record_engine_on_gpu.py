"""The engine recorded on a GPU, cell by cell: the checker finds there what it finds on the simulated device."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch

from refimpl import device as devices
from refimpl.fences import Expect, preset
from refimpl.lessons.timelines.presets import recorded_preset, verdict_of
from tests.conftest import ROOT

pytestmark = pytest.mark.gpu

PRESETS = (
    "28363",
    "latest",
    "35748",
    "29541",
    "29843",
    "34052",
    "no-barrier",
    "25465",
    "before-25465",
    "seed-chain-bare-eagle",
    "latest-plan",
    "plan-none",
)
# Memory that a step allocates: which block it gets, and whose it was before, is the allocator's affair.
OF_A_STEP = ("seq_lens", "req_pool_indices", "bonus_tokens", "new_seq_lens")
# A block that the allocator cut or merged between two owners has no owner's name.
UNNAMED = re.compile(r"memory\d+")


@pytest.fixture(scope="module")
def on_sim() -> Iterator[Any]:
    """What is found there: asked for at the first test, and computed beside the GPU's work."""
    command = [sys.executable, "-m", "refimpl.lessons.timelines.presets", *PRESETS]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found: dict[str, Any] = {}

    def of(name: str) -> Any:
        if not found:
            out, errors = process.communicate()
            assert process.returncode == 0, errors
            found.update(json.loads(out))
        return found[name]

    yield of
    process.kill()


def split(race: str) -> tuple[str, str]:
    """The kind and the buffer of a race in words."""
    kind, _, buffer = race.rpartition(" on ")
    return kind, buffer


def lasting(races: Iterable[str]) -> set[str]:
    """Races on memory that lives as long as the engine."""
    told = [race for race in races if not race.startswith("lifetime")]
    return {race for race in told if not (split(race)[1] in OF_A_STEP or UNNAMED.fullmatch(split(race)[1]))}


def unnamed(races: Iterable[str]) -> set[str]:
    """Kinds of races on blocks of steps whose names the allocator's cuts took away."""
    return {split(race)[0] for race in races if UNNAMED.fullmatch(split(race)[1])} - {"lifetime"}


@pytest.mark.parametrize("name", PRESETS)
def test_the_checker_finds_on_a_gpu_what_it_finds_on_the_simulated_device(name: str, on_sim: Any) -> None:
    torch.set_num_threads(1)
    found = verdict_of(recorded_preset(preset(name), "cuda"))
    devices.get("cuda").synchronize()
    there = on_sim(name)
    assert found.widened == ()
    assert found.verdict == there["verdict"] == ("ok" if preset(name).expect is Expect.RIGHT else "race")
    assert lasting(found.races) == lasting(there["races"])
    # Whose memory an unnamed block was is known on sim, where each step's has a name: a step's, and of no other kind.
    assert unnamed(found.races) <= {split(race)[0] for race in there["races"] if split(race)[1] in OF_A_STEP}
    assert (found.handovers > 0) == (there["handovers"] > 0)
