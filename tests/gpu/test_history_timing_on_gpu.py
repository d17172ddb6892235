"""Every part of the timings runs on a GPU; what it measures is not judged here."""

from dataclasses import replace

import pytest
import torch

from refimpl.lessons.bench_engine.subject import Subject
from refimpl.lessons.history_timing.cases import PARTS
from refimpl.lessons.history_timing.plan import DRAFTS, SIMULATED, Share
from refimpl.lessons.history_timing.report import Run
from refimpl.model.registry import random_draft, random_target
from refimpl.model.shapes import FAMILIES

pytestmark = pytest.mark.gpu

AMOUNTS = replace(SIMULATED, shares=(Share(2, 1, 6),), swept=2)


def random_nano(name: str) -> Subject:
    family = FAMILIES["nano"]
    target = random_target(family.target, "cuda", torch.bfloat16)
    return Subject(name, target, {kind: random_draft(family.drafts()[kind], target) for kind in DRAFTS})


def test_every_part_runs_on_a_gpu() -> None:
    report = Run("cuda", models={"nano": AMOUNTS}, subjects=random_nano).measure()
    assert report["failed"] == []
    assert report["left_out"] == []
    assert [part for part in PARTS if not report.get(part)] == []
    for row in report["self_fence"]:
        assert 0 <= row["idle_share"] < 1
        assert row["before_us"] >= 0
        if row["preset"] == "latest" and not row["needs_cpu_seq_lens"]:
            assert row["before_us"] == 0
