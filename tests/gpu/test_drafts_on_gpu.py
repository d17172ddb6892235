"""EAGLE, its trees and the multi-layer EAGLE on a GPU: in graphs and with kernels they do what they do on `sim`."""

from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
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
PARAMS = {"greedy": (GREEDY,) * 3, "mixed": MIXED}
WINDOWS = (None, 5)


@dataclass(frozen=True)
class Case:
    """A draft, how its tokens are chosen, and what the target's second layer sees."""

    draft: str
    params: str = "greedy"
    window: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Of `run`."""
        kind, options = DRAFTS[self.draft]
        return {"kind": kind, "params": PARAMS[self.params], "window": self.window, **options}


CASES = [Case(*of) for of in product(DRAFTS, PARAMS, WINDOWS)]
OnSim = dict[Case, Future[Watched]]


@pytest.fixture(scope="module")
def on_sim() -> Iterator[OnSim]:
    """Every case on `sim`, in one process of its own: PyTorch cannot have `sim` and CUDA in one."""
    process = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    yield {case: process.submit(run, **case.options) for case in CASES}
    process.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_text_is_that_of_sim(case: Case, on_sim: OnSim) -> None:
    outputs = run(device="cuda", **case.options).outputs
    assert outputs == on_sim[case].result().outputs
    if case.params == "greedy":
        assert outputs == run("none", PARAMS[case.params], window=case.window, device="cuda").outputs


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_step_leaves_what_it_leaves_on_sim(draft: str, on_sim: OnSim) -> None:
    case = Case(draft)
    steps, wanted = run(device="cuda", **case.options).steps, on_sim[case].result().steps
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
