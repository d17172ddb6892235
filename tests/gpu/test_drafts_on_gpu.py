"""EAGLE, its trees and the multi-layer EAGLE on a GPU: in graphs and with kernels they do what they do on `sim`."""

from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any

import pytest
import torch

from tests.unit.engine_drafts.watched import GREEDY, MIXED, Watched, run

pytestmark = pytest.mark.gpu

DRAFTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chain": ("eagle", {}),
    "tree": ("eagle", {"draft_topk": 3, "draft_tokens": 8}),
    "heads": ("mtp", {}),
}


@cache
def run_on_sim(kind: str, params: Any = (GREEDY,) * 3, **options: Any) -> Watched:
    """In a process of its own: PyTorch cannot have `sim` and CUDA in one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(run, kind, params, **options).result()


@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("params", [(GREEDY,) * 3, MIXED], ids=["greedy", "mixed"])
@pytest.mark.parametrize("draft", DRAFTS)
def test_the_text_is_that_of_sim(draft: str, params: Any, window: int | None) -> None:
    kind, options = DRAFTS[draft]
    on_gpu = run(kind, params, window=window, device="cuda", **options)
    assert on_gpu.outputs == run_on_sim(kind, params, window=window, **options).outputs
    if params != MIXED:
        assert on_gpu.outputs == run("none", params, window=window, device="cuda").outputs


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_step_leaves_what_it_leaves_on_sim(draft: str) -> None:
    kind, options = DRAFTS[draft]
    steps, wanted = run(kind, device="cuda", **options).steps, run_on_sim(kind, **options).steps
    assert len(steps) == len(wanted) > 6
    for step, other in zip(steps, wanted, strict=True):
        slots, others = (one.seen["page_table"][: one.new_seq_len].long() for one in (step, other))
        for name, value in other.seen.items():
            # What lies behind the committed entries is scratch, and rows behind the accepted ones mean nothing.
            if name.startswith(("draft_k", "draft_v", "target_k", "target_v")):
                torch.testing.assert_close(step.seen[name][slots], value[others], atol=1e-4, rtol=1e-3)
            elif name in ("draft_tokens", "parents", "packed", "bonus_tokens", "new_seq_lens"):
                assert step.seen[name].tolist() == value.tolist(), name
            elif name == "hidden_states":
                torch.testing.assert_close(step.seen[name], value, atol=1e-4, rtol=1e-3)
