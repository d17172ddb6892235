"""What a run measures, by device: which weights, which batches, how long."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from refimpl.lessons.bench_engine.workload import Workload
from refimpl.program.errors import UserError


@dataclass(frozen=True)
class Amounts:
    """How much of each part is measured on one set of weights.

    Args:
        drafts: kinds that are loaded.
        plain_batches: requests that decode together without a draft; the largest is what the scheduler is made for.
        overlapped_plain, overlapped_draft: of these, and with DFLASH, the batches of the overlapped step.
        draft_requests: what the schedulers with a draft are made for.
        work: prompt and new tokens of plain decoding.
        draft_work: the same with a draft, which brings several tokens a step.
        serving: the requests that arrive and leave.
        concurrency: of these, how many at a time.
        batched: requests of the comparison with peers.
        accept_prompts: prompts of each domain of the acceptance; 0 leaves it out.
        accept_tokens: tokens written behind each.
        peers: whether transformers runs beside.
        rounds: turns of interleaved variants.
    """

    drafts: tuple[str, ...]
    plain_batches: tuple[int, ...]
    overlapped_plain: tuple[int, ...]
    overlapped_draft: tuple[int, ...]
    draft_requests: int
    work: Workload
    draft_work: Workload
    serving: Workload
    concurrency: int
    batched: int
    accept_prompts: int
    accept_tokens: int
    peers: bool
    rounds: int


SMALL = Amounts(
    drafts=("eagle", "mtp", "dflash"),
    plain_batches=(1, 16, 64),
    overlapped_plain=(1, 16, 64),
    overlapped_draft=(1, 16, 32),
    draft_requests=32,
    work=Workload(1, new_tokens=128),
    draft_work=Workload(1, new_tokens=384),
    serving=Workload(128, new_tokens=160, spread=64),
    concurrency=32,
    batched=16,
    accept_prompts=64,
    accept_tokens=160,
    peers=True,
    rounds=2,
)

LARGE = Amounts(
    drafts=("dflash",),
    plain_batches=(1, 16, 64),
    overlapped_plain=(16, 64),
    overlapped_draft=(16, 32),
    draft_requests=32,
    work=Workload(1, new_tokens=64),
    draft_work=Workload(1, new_tokens=256),
    serving=Workload(96, new_tokens=128, spread=64),
    concurrency=32,
    batched=16,
    accept_prompts=0,
    accept_tokens=0,
    peers=True,
    rounds=2,
)

SIMULATED = Amounts(
    drafts=("dflash",),
    plain_batches=(1, 4),
    overlapped_plain=(4,),
    overlapped_draft=(4,),
    draft_requests=4,
    work=Workload(1, prompt_tokens=8, new_tokens=16),
    draft_work=Workload(1, prompt_tokens=8, new_tokens=32),
    serving=Workload(10, prompt_tokens=8, new_tokens=8, spread=4),
    concurrency=4,
    batched=4,
    accept_prompts=2,
    accept_tokens=8,
    peers=False,
    rounds=1,
)
"""Times on the simulated device are virtual, so a few steps say as much as many."""

MODELS: dict[str, dict[str, Amounts]] = {
    "cuda": {"small": SMALL, "8b": LARGE},
    "sim": {"nano": SIMULATED},
}
"""By device: the weights, the trained ones first, since the others take their accept lengths from them."""


Measured = TypeVar("Measured")


def chosen(device: str, names: Sequence[str] | None) -> dict[str, Amounts]:
    """The weights to measure on a device, in their order; None for all of them.

    Raises:
        UserError: weights that no run on this device measures.
    """
    return named(MODELS[device], device, names)


def named(known: dict[str, Measured], device: str, names: Sequence[str] | None) -> dict[str, Measured]:
    """Those of the weights that are named, in the order of ``known``; None for all of them.

    Raises:
        UserError: weights that no run on this device measures.
    """
    if names is None:
        return known
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserError(f"--models: {unknown[0]!r} is not measured on {device}, use some of {','.join(known)}")
    return {name: amounts for name, amounts in known.items() if name in names}
