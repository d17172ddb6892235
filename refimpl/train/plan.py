"""The recipe of a run: what is trained, how, and how its time is divided."""

from dataclasses import dataclass, replace

from refimpl.train.evaluate import Evaluation
from refimpl.train.loop import Optimizing
from refimpl.train.selfgen import Writing

CONTEXT = 512
SERVING_TEMPERATURES = ((0.0, 0.5), (0.7, 0.25), (1.0, 0.25))
"""Each with its share of what the target writes for its drafts."""


@dataclass(frozen=True)
class Training:
    """How one model is trained.

    Args:
        rows: of a batch.
        optimizing: rates.
        hard_share: of a draft's loss: how much the token in the text counts beside the target's distribution.
        own_share: of a draft's batch: rows that the target wrote.
        anchors: blocks in a row, for DFLASH.
        own_from: of a target: from which share of its time on it also reads its own greedy text.
        own_rows: of a target's batch then: rows of that text.
    """

    rows: int
    optimizing: Optimizing
    hard_share: float = 0.0
    own_share: float = 0.0
    anchors: int = 0
    own_from: float = 1.0
    own_rows: int = 0


@dataclass(frozen=True)
class SizePlan:
    """One size: its target, what that writes, its drafts, how they are measured."""

    target: Training
    writing: Writing
    drafts: dict[str, Training]
    evaluation: Evaluation
    context: int = CONTEXT


@dataclass(frozen=True)
class Span:
    """From when to when a job runs, in shares of the run's time; `gpu` is taken modulo the GPUs that there are."""

    job: str
    size: str
    start: float
    end: float
    gpu: int


def _drafts(rows: int, anchors: int, rates: dict[str, float]) -> dict[str, Training]:
    def training(kind: str) -> Training:
        optimizing = Optimizing(learning_rate=rates[kind], weight_decay=0.05)
        if kind == "dflash":  # its later slots are far from any one distribution of the target: the text teaches it
            return Training(rows, optimizing, hard_share=1.0, own_share=0.9, anchors=anchors)
        return Training(rows, optimizing, hard_share=0.8, own_share=0.9)

    return {kind: training(kind) for kind in rates}


PLANS = {
    "nano": SizePlan(
        target=Training(64, Optimizing(learning_rate=4e-3, warmup_steps=200), own_from=0.6, own_rows=16),
        writing=Writing(4096, CONTEXT, (64, 416), SERVING_TEMPERATURES),
        drafts=_drafts(48, 48, {"eagle": 4e-3, "mtp": 4e-3, "dflash": 3e-3}),
        evaluation=Evaluation(prompts=128, prompt_tokens=128, new_tokens=128),
    ),
    "small": SizePlan(
        target=Training(64, Optimizing(learning_rate=2.5e-3, warmup_steps=300), own_from=0.6, own_rows=16),
        writing=Writing(4096, CONTEXT, (64, 416), SERVING_TEMPERATURES),
        drafts=_drafts(32, 48, {"eagle": 2e-3, "mtp": 2e-3, "dflash": 2e-3}),
        evaluation=Evaluation(prompts=128, prompt_tokens=128, new_tokens=128),
    ),
}
"""By size. The last layer's output is no feature, the mask token is never a label, contexts are of one length."""

SCHEDULE = (
    Span("target", "small", 0.0, 0.32, gpu=0),
    Span("target", "nano", 0.0, 0.17, gpu=1),
    Span("draft-eagle", "nano", 0.04, 0.34, gpu=1),
    Span("draft-dflash", "nano", 0.06, 0.34, gpu=1),
    Span("draft-mtp", "nano", 0.06, 0.34, gpu=2),
    Span("selfgen", "nano", 0.13, 0.26, gpu=2),
    Span("draft-eagle", "small", 0.14, 0.89, gpu=2),
    Span("draft-dflash", "small", 0.20, 0.89, gpu=1),
    Span("draft-mtp", "small", 0.24, 0.84, gpu=0),
    Span("selfgen", "small", 0.28, 0.60, gpu=0),
    Span("evaluate-dflash", "nano", 0.33, 0.55, gpu=2),
    Span("evaluate-eagle", "nano", 0.33, 0.55, gpu=0),
    Span("evaluate-mtp", "nano", 0.33, 0.55, gpu=0),
    Span("evaluate-mtp", "small", 0.82, 1.0, gpu=0),
    Span("evaluate-dflash", "small", 0.87, 1.0, gpu=1),
    Span("evaluate-eagle", "small", 0.87, 1.0, gpu=2),
)
"""Jobs start early, so that they are loaded and compiled when the files that they wait for appear."""


RESUMED_SCHEDULE = (
    Span("target", "small", 0.0, 0.25, gpu=0),
    Span("draft-dflash", "small", 0.0, 0.885, gpu=1),
    Span("draft-eagle", "small", 0.0, 0.885, gpu=2),
    Span("draft-mtp", "small", 0.18, 0.84, gpu=0),
    Span("selfgen", "small", 0.20, 0.62, gpu=0),
    Span("evaluate-mtp", "small", 0.80, 1.0, gpu=0),
    Span("evaluate-dflash", "small", 0.85, 1.0, gpu=1),
    Span("evaluate-eagle", "small", 0.85, 1.0, gpu=2),
)
"""Of a run that goes on from an earlier one. Drafts learn from the earlier target until the new one is there."""


def resumed(plan: SizePlan) -> SizePlan:
    """The same plan at rates for weights that have been trained; a draft whose shape has changed starts anew."""
    target = replace(plan.target, optimizing=Optimizing(1e-3, warmup_steps=50), own_from=0.4)
    gentle = Optimizing(1.5e-3, weight_decay=0.05)
    drafts = {
        kind: replace(each, optimizing=each.optimizing if kind == "eagle" else gentle)
        for kind, each in plan.drafts.items()
    }
    return replace(plan, target=target, drafts=drafts)


def rehearsal(plan: SizePlan) -> SizePlan:
    """The same plan with batches small enough for a CPU."""
    small = Writing(8, 64, (4, 16), SERVING_TEMPERATURES)
    drafts = {kind: replace(each, rows=4, anchors=min(each.anchors, 4)) for kind, each in plan.drafts.items()}
    return SizePlan(
        target=replace(plan.target, rows=8, own_rows=2),
        writing=small,
        drafts=drafts,
        evaluation=Evaluation(prompts=2, prompt_tokens=16, new_tokens=16),
        context=64,
    )
