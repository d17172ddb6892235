"""What is kept of a case's steps, and of two cases beside each other."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from refimpl.lessons.bench_engine.observed import Step
from refimpl.lessons.bench_engine.timing import Spread
from refimpl.lessons.history_timing.cases import Case, Pair


@dataclass(frozen=True)
class FenceRow:
    """One case at one batch; times are medians over ``n`` steps, by the host's clock where nothing else is said.

    The bound: a step takes at least the longest of the host's work, the forward's and what was added on schedule, and
    at most all of them one after another.

    Args:
        model, draft, preset, needs_cpu_seq_lens, again: which engine.
        batch: requests that decode together, none arriving or leaving.
        added_host_ms, added_schedule_ms, item: what was added to each turn.
        step_ms, step_p10_ms, step_p90_ms: one turn of the loop.
        before_us, before_p10_us, before_p90_us: host standing still before the launch of the turn's forward.
        after_us: and behind it, for results.
        launch_ms: from the top of the turn to the launch.
        host_ms: what the host does in a turn but stand still, what was added included.
        forward_ms: the forward-stream work, glue included, queued back to back without a scheduler.
        over_lower, over_upper: step over either bound.
        idle_share: of a step by the forward stream's events, in runs of their own, the part without work.
        reference_us: a fixed set of host calls, timed before each round: how fast the host was.
        n: steps.
    """

    model: str
    draft: str
    preset: str
    needs_cpu_seq_lens: bool
    again: bool
    batch: int
    added_host_ms: float
    added_schedule_ms: float
    item: bool
    step_ms: float
    step_p10_ms: float
    step_p90_ms: float
    before_us: float
    before_p10_us: float
    before_p90_us: float
    after_us: float
    launch_ms: float
    host_ms: float
    forward_ms: float
    over_lower: float
    over_upper: float
    idle_share: float
    reference_us: float
    n: int


@dataclass(frozen=True)
class PairRow:
    """Steps of a case over those of its control: medians of each round set against each other.

    Args:
        model, draft, batch: of both.
        preset, control: whose steps.
        again: whether both are the same preset: what is left is no fence.
        added_host_ms, added_schedule_ms, item: what was added to each turn of both.
        ratio, ratio_p10, ratio_p90: over the rounds.
        difference_us: the median of the differences.
        rounds: of these, how many.
    """

    model: str
    draft: str
    batch: int
    preset: str
    control: str
    again: bool
    added_host_ms: float
    added_schedule_ms: float
    item: bool
    ratio: float
    ratio_p10: float
    ratio_p90: float
    difference_us: float
    rounds: int


@dataclass
class Taken:
    """What was seen of one case.

    Args:
        forward_ms: of its engine.
        rounds: steps of each turn.
        marked: steps of the turns with marks.
    """

    forward_ms: float
    rounds: list[list[Step]] = field(default_factory=list)
    marked: list[Step] = field(default_factory=list)

    def row(self, case: Case, model: str, batch: int, reference_us: float) -> FenceRow:
        """All of it together."""
        steps = [step for steps in self.rounds for step in steps]
        whole = Spread.of([step.us for step in steps]).scaled(1e-3)
        before = Spread.of([step.blocked_before_us for step in steps])
        host_ms = _median(steps, lambda step: step.host_us) / 1000
        lower = max(host_ms, self.forward_ms, case.added_schedule_ms)
        upper = host_ms + self.forward_ms + case.added_schedule_ms
        return FenceRow(
            model=model,
            draft=case.draft,
            preset=case.preset,
            needs_cpu_seq_lens=case.needs_cpu_seq_lens,
            again=case.again,
            batch=batch,
            added_host_ms=case.added_host_ms,
            added_schedule_ms=case.added_schedule_ms,
            item=case.item,
            step_ms=whole.median,
            step_p10_ms=whole.p10,
            step_p90_ms=whole.p90,
            before_us=before.median,
            before_p10_us=before.p10,
            before_p90_us=before.p90,
            after_us=_median(steps, lambda step: step.blocked_us - step.blocked_before_us),
            launch_ms=_median(steps, lambda step: step.launch_us) / 1000,
            host_ms=host_ms,
            forward_ms=self.forward_ms,
            over_lower=whole.median / lower,
            over_upper=whole.median / upper,
            idle_share=_idle_share(self.marked),
            reference_us=reference_us,
            n=whole.n,
        )


def pair_row(pair: Pair, model: str, batch: int, case: Taken, control: Taken) -> PairRow:
    """A case beside its control."""
    medians = [
        (_median(one, lambda step: step.us), _median(other, lambda step: step.us))
        for one, other in zip(case.rounds, control.rounds, strict=True)
    ]
    ratio = Spread.of([one / other for one, other in medians])
    return PairRow(
        model=model,
        draft=pair.case.draft,
        batch=batch,
        preset=pair.case.preset,
        control=pair.control.preset,
        again=pair.case.again,
        added_host_ms=pair.case.added_host_ms,
        added_schedule_ms=pair.case.added_schedule_ms,
        item=pair.case.item,
        ratio=ratio.median,
        ratio_p10=ratio.p10,
        ratio_p90=ratio.p90,
        difference_us=statistics.median(one - other for one, other in medians),
        rounds=ratio.n,
    )


def _median(steps: Sequence[Step], of: Callable[[Step], float]) -> float:
    return statistics.median(of(step) for step in steps)


def _idle_share(steps: Sequence[Step]) -> float:
    seen = [(step.idle_us, step.device_us) for step in steps if step.idle_us is not None and step.device_us is not None]
    return sum(idle for idle, _ in seen) / sum(device for _, device in seen)
