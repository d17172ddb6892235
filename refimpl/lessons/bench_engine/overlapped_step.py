"""How far the overlapped loop is from its bound: the same forward-stream work queued back to back, and the host's."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refimpl.lessons.bench_engine.drive import run_to_end
from refimpl.lessons.bench_engine.forward_only import forward_stream_ms, forward_work
from refimpl.lessons.bench_engine.host_calls import calls_a_step
from refimpl.lessons.bench_engine.host_reference import HostReference
from refimpl.lessons.bench_engine.observed import Step, Watch, observed
from refimpl.lessons.bench_engine.quiet import QuietHost
from refimpl.lessons.bench_engine.subject import Subject
from refimpl.lessons.bench_engine.timing import Spread
from refimpl.lessons.bench_engine.workload import Workload

STALL_US = 20_000.0
"""Long enough for the host to queue some steps with their glue, where it is slower than the device."""
REPEATS = 20
QUIET_RUNS = 3
"""A turn, of the loop without marks: what disturbs the host comes and goes within seconds."""
COUNTED_TOKENS = 48
"""New tokens of the run in which calls are counted: each step makes the same."""


@dataclass(frozen=True)
class OverlappedStepRow:
    """One batch size of one model with one draft; times are medians over ``n`` steps.

    Args:
        model, draft: which weights.
        batch: requests that decode together, none arriving or leaving.
        step_ms, step_p10_ms, step_p90_ms: one step of `event_loop_overlap`, by the host's clock, nothing attached.
        forward_ms: its forward-stream work, glue included, queued back to back without a scheduler: that of a step in
            the middle of the run, since texts grow.
        host_ms: what the host does in a step but stand still.
        blocked_ms: how long it stands still, in `copy_done.synchronize()`.
        calls: what the host calls in a step, by kind.
        reference_us: a fixed set of calls, timed before and after each of these runs, the slower of the two: how fast
            the host was then.
        disturbed: runs that were left out, as the host was slower beside them.
        over_forward: step over forward work.
        over_bound: step over the longer of host work and forward work.
        device_step_ms: one step by events on the forward stream, in runs of their own.
        idle_share: of `device_step_ms`, the part in which the forward stream had nothing to do.
        n: steps.
    """

    model: str
    draft: str
    batch: int
    step_ms: float
    step_p10_ms: float
    step_p90_ms: float
    forward_ms: float
    host_ms: float
    blocked_ms: float
    calls: dict[str, float]
    reference_us: float
    disturbed: int
    over_forward: float
    over_bound: float
    device_step_ms: float
    idle_share: float
    n: int


def overlapped_steps(
    subject: Subject, draft: str, batches: Sequence[int], most: int, rounds: int, work: Workload
) -> list[OverlappedStepRow]:
    """Every batch size: the loop without marks, the loop with marks, and the forward work alone, taking turns.

    The loop without marks is what the figures of the host are of, so it runs while the host is quiet.

    Args:
        subject: whose scheduler.
        draft: its draft, or none.
        batches: requests that decode together.
        most: requests that the scheduler is made for.
        rounds: turns.
        work: lengths of the requests; their number is taken from `batches`.
    """
    host = QuietHost(HostReference(subject.device).us, binds=subject.device != "sim")
    return [_row(subject, host, draft, batch, most, rounds, work) for batch in batches]


def _row(
    subject: Subject, quiet: QuietHost, draft: str, batch: int, most: int, rounds: int, like: Workload
) -> OverlappedStepRow:
    scheduler = subject.scheduler(draft, most)
    work = Workload(batch, like.prompt_tokens, like.new_tokens)

    def watched(marks: bool) -> Watch:
        with observed(scheduler, marks=marks) as watch:
            run_to_end(scheduler, subject.requests(work))
        return watch

    plain: list[Step] = []
    marked: list[Step] = []
    alone: list[float] = []
    beside: list[float] = []
    disturbed = 0
    for _ in range(rounds):
        for _ in range(QUIET_RUNS):
            unmarked = quiet.run(lambda: watched(False))
            plain.extend(unmarked.outcome.steady(batch))
            beside.append(unmarked.reference_us)
            disturbed += unmarked.again
        watch = watched(True)
        marked.extend(watch.steady(batch))
        queue = forward_work(scheduler, watch.middle_decode(batch))
        alone.extend(forward_stream_ms(scheduler, queue, REPEATS, STALL_US))
    step = Spread.of([one.us for one in plain]).scaled(1e-3)
    forward, host = statistics.median(alone), _median_ms(plain, lambda one: one.host_us)
    device_us = [one.device_us for one in marked if one.device_us is not None]
    idle_us = [one.idle_us for one in marked if one.idle_us is not None]
    counted = Workload(batch, like.prompt_tokens, min(like.new_tokens, COUNTED_TOKENS))
    return OverlappedStepRow(
        model=subject.name,
        draft=draft,
        batch=batch,
        step_ms=step.median,
        step_p10_ms=step.p10,
        step_p90_ms=step.p90,
        forward_ms=forward,
        host_ms=host,
        blocked_ms=_median_ms(plain, lambda one: one.blocked_us),
        calls=calls_a_step(scheduler, subject.requests(counted)),
        reference_us=statistics.median(beside),
        disturbed=disturbed,
        over_forward=step.median / forward,
        over_bound=step.median / max(host, forward),
        device_step_ms=statistics.median(device_us) / 1000,
        idle_share=sum(idle_us) / sum(device_us),
        n=step.n,
    )


def _median_ms(steps: Sequence[Step], of: Callable[[Step], float]) -> float:
    return statistics.median(of(step) for step in steps) / 1000
