"""Every part of the engine's benchmark runs on a GPU, peers included; what it measures is not judged here."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from refimpl.lessons.bench_engine.plan import SIMULATED, Amounts
from refimpl.lessons.bench_engine.report import PARTS, Run
from refimpl.lessons.bench_engine.subject import Subject
from refimpl.lessons.bench_engine.workload import Workload
from refimpl.model.registry import random_draft, random_target
from refimpl.model.shapes import FAMILIES

pytestmark = pytest.mark.gpu

AMOUNTS = replace(
    SIMULATED,
    work=Workload(1, prompt_tokens=16, new_tokens=48),
    draft_work=Workload(1, prompt_tokens=16, new_tokens=96),
    serving=Workload(12, prompt_tokens=16, new_tokens=32, spread=16),
    peers=True,
)


def random_nano(name: str, amounts: Amounts, _: Sequence[int] | None) -> Subject:
    family = FAMILIES["nano"]
    target = random_target(family.target, "cuda", torch.bfloat16)
    drafts = {kind: random_draft(family.drafts()[kind], target) for kind in amounts.drafts}
    return Subject(name, target, drafts, forced=[0, 0, 1])


def test_every_part_runs_on_a_gpu() -> None:
    report = Run("cuda", models={"nano": AMOUNTS}, subjects=random_nano).measure()
    assert report["failed"] == []
    assert [part for part in PARTS if not report.get(part)] == []
    for row in report["overlapped_steps"]:
        assert 0 <= row["idle_share"] < 1
        assert row["step_ms"] >= 0.9 * row["forward_ms"]
        assert row["reference_us"] > 0
        # A step loads its batch with a kernel of the model's own, which PyTorch's dispatcher does not see.
        assert {"operator", "Triton kernel", "replay", "record", "wait", "synchronize"} <= set(row["calls"])
