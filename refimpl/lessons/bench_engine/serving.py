"""Both loops while requests arrive and leave, with host work added to each step: throughput beside its bound."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from refimpl.lessons.bench_engine.drive import Loop, Served, serve
from refimpl.lessons.bench_engine.forward_only import forward_stream_ms, forward_work
from refimpl.lessons.bench_engine.observed import Watch, observed
from refimpl.lessons.bench_engine.subject import Subject
from refimpl.lessons.bench_engine.workload import Workload

HOST_MS = (0.2, 1.0, 3.0)
STALL_US = 20_000.0
REPEATS = 10
PREFILL_REPEATS = 5


@dataclass(frozen=True)
class ServingRow:
    """One loop at one amount of added host work; medians over ``n`` runs.

    The bound: the forward stream has to do all forwards, the host has to do all its work, so a run takes at least the
    longer of the two, and a loop that never does both at once takes their sum.

    Args:
        model, draft, loop: what ran.
        concurrency: requests that decode together; when one leaves, the next arrives.
        added_host_ms: host work added to each step.
        tokens_per_s: of all requests together.
        run_ms: how long the counted part took.
        host_ms, forward_ms: of it, the host's own work with what was added; and the forwards' work, prefills included,
            each timed alone.
        over_lower: run over the longer of the two.
        over_upper: run over their sum.
        over_normal: tokens_per_s over that of `event_loop_normal`.
        steps: forwards in a run.
        n: runs.
    """

    model: str
    draft: str
    loop: str
    concurrency: int
    added_host_ms: float
    tokens_per_s: float
    run_ms: float
    host_ms: float
    forward_ms: float
    over_lower: float
    over_upper: float
    over_normal: float
    steps: int
    n: int


@dataclass(frozen=True)
class _Run:
    served: Served
    host_ms: float
    decodes: int
    prefills: int

    @property
    def rate(self) -> float:
        return self.served.tokens / self.served.us


def served(
    subject: Subject, draft: str, concurrency: int, work: Workload, host_ms: Sequence[float] = HOST_MS, rounds: int = 3
) -> list[ServingRow]:
    """Every amount of host work and both loops, taking turns.

    Args:
        subject: whose scheduler.
        draft: its draft, or none.
        concurrency: requests that decode together.
        work: the requests, more than `concurrency`.
        host_ms: host work to add to each step.
        rounds: turns, after one that is thrown away.
    """
    scheduler = subject.scheduler(draft, concurrency)
    runs: dict[tuple[float, Loop], list[_Run]] = {(host, loop): [] for host in host_ms for loop in Loop}
    decode, prefill = _forward_ms(subject, draft, concurrency, work)
    for _ in range(rounds):
        for (host, loop), of in runs.items():
            with observed(scheduler, host_work_us=1000 * host) as watch:
                out = serve(scheduler, subject.requests(work), concurrency, loop)
            of.append(_run(watch, out))
    rows = []
    for (host, loop), of in runs.items():
        control = statistics.median(run.rate for run in runs[host, Loop.NORMAL])
        rows.append(_row(subject.name, draft, concurrency, loop, host, of, (decode, prefill), control))
    return rows


def _forward_ms(subject: Subject, draft: str, concurrency: int, work: Workload) -> tuple[float, float]:
    """A decode of a full batch and a prefill of an arrival, each alone on the forward stream."""
    scheduler = subject.scheduler(draft, concurrency)
    with observed(scheduler) as watch:
        serve(scheduler, subject.requests(work), concurrency, Loop.OVERLAP)
    decode = forward_work(scheduler, watch.last_decode(concurrency))
    extends = [beat.batch for beat in watch.beats if beat.batch is not None and beat.batch.forward_mode.is_extend()]
    prefill = forward_work(scheduler, min(extends, key=lambda batch: batch.batch_size))
    # A prefill has no graph: its launches would fill the queue of a stalled stream, so each is stalled alone.
    prefills = [time for _ in range(PREFILL_REPEATS) for time in forward_stream_ms(scheduler, prefill, 1, STALL_US)]
    return (
        statistics.median(forward_stream_ms(scheduler, decode, REPEATS, STALL_US)),
        statistics.median(prefills),
    )


def _run(watch: Watch, out: Served) -> _Run:
    beats = [beat for beat in watch.beats if out.begin_us <= beat.begin_us < out.end_us]
    blocked = sum(beat.blocked_us for beat in beats)
    prefills = sum(beat.batch is not None and beat.batch.forward_mode.is_extend() for beat in beats)
    return _Run(out, (out.us - blocked) / 1000, len(beats) - prefills, prefills)


def _row(
    model: str,
    draft: str,
    concurrency: int,
    loop: Loop,
    added: float,
    runs: Sequence[_Run],
    forward: tuple[float, float],
    control: float,
) -> ServingRow:
    decode, prefill = forward
    taken = statistics.median(run.served.us for run in runs) / 1000
    host = statistics.median(run.host_ms for run in runs)
    forwards = statistics.median(run.decodes * decode + run.prefills * prefill for run in runs)
    rate = statistics.median(run.rate for run in runs)
    return ServingRow(
        model=model,
        draft=draft,
        loop=str(loop),
        concurrency=concurrency,
        added_host_ms=added,
        tokens_per_s=1e6 * rate,
        run_ms=taken,
        host_ms=host,
        forward_ms=forwards,
        over_lower=taken / max(host, forwards),
        over_upper=taken / (host + forwards),
        over_normal=rate / control,
        steps=runs[0].decodes + runs[0].prefills,
        n=len(runs),
    )
