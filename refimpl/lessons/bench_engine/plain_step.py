"""How far the engine's decode graph is from its floor: replayed back to back, beside the matrix products alone."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from refimpl.lessons.bench_engine.bounds import MatrixProducts, bytes_of, matrices_of
from refimpl.lessons.bench_engine.drive import run_to_end
from refimpl.lessons.bench_engine.forward_only import forward_stream_ms, replays
from refimpl.lessons.bench_engine.observed import observed
from refimpl.lessons.bench_engine.subject import PLAIN, Subject
from refimpl.lessons.bench_engine.timing import Spread, interleaved
from refimpl.lessons.bench_engine.workload import Workload

STALL_US = 3000.0
"""Long enough for the host to queue some replays of the smallest graph."""


@dataclass(frozen=True)
class PlainStepRow:
    """One batch size of one model; times in milliseconds are medians over ``n`` replays.

    Args:
        model: which weights.
        batch: requests, each of which adds one token.
        kv_tokens: tokens in each request's cache, at most.
        bare_ms, bare_p10_ms, bare_p90_ms: a replay of the engine's decode graph, back to back with others.
        products_ms: a replay of the matrix products of the same weights alone, in the same run.
        over_products: the ratio of the two.
        weights_gb, tb_per_s: what the products read, and how fast.
        n: replays of each.
    """

    model: str
    batch: int
    kv_tokens: int
    bare_ms: float
    bare_p10_ms: float
    bare_p90_ms: float
    products_ms: float
    over_products: float
    weights_gb: float
    tb_per_s: float
    n: int


def plain_steps(
    subject: Subject, batches: Sequence[int], rounds: int, work: Workload, repeats: int = 20
) -> list[PlainStepRow]:
    """Every batch size, the engine's graph and the products taking turns.

    Args:
        subject: whose plain scheduler.
        batches: requests that decode together; the largest is what the scheduler is made for.
        rounds, repeats: turns, and replays in each.
        work: lengths of the requests that load the graph; their number is taken from `batches`.
    """
    return [_row(subject, batch, max(batches), rounds, repeats, work) for batch in batches]


def _row(subject: Subject, batch: int, most: int, rounds: int, repeats: int, like: Workload) -> PlainStepRow:
    scheduler = subject.scheduler(PLAIN, most)
    work = Workload(batch, like.prompt_tokens, like.new_tokens)
    with observed(scheduler) as watch:
        run_to_end(scheduler, subject.requests(work))
    replay = replays(scheduler, watch.last_decode(batch))
    weights = matrices_of(subject.target, subject.head())
    with torch.inference_mode():
        products = MatrixProducts(subject.device, weights, batch)
    times = interleaved(
        {
            "bare": lambda: forward_stream_ms(scheduler, replay, repeats, STALL_US),
            "products": lambda: forward_stream_ms(scheduler, products.replay, repeats, STALL_US),
        },
        rounds,
    )
    bare, floor = Spread.of(times["bare"]), statistics.median(times["products"])
    read = bytes_of(weights)
    return PlainStepRow(
        model=subject.name,
        batch=batch,
        kv_tokens=work.longest,
        bare_ms=bare.median,
        bare_p10_ms=bare.p10,
        bare_p90_ms=bare.p90,
        products_ms=floor,
        over_products=bare.median / floor,
        weights_gb=read / 1e9,
        tb_per_s=read / (floor * 1e9),
        n=bare.n,
    )
