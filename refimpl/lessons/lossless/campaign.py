"""One run of a load on an engine under a schedule, judged; and many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from refimpl import device as devices
from refimpl.engine.request import FinishReason, Req
from refimpl.lessons.lossless.load import LoadShape, draw_load
from refimpl.lessons.lossless.oracle import Judged, judge_greedy
from refimpl.lessons.lossless.play import play
from refimpl.lessons.lossless.setups import VARIANTS, Built, Setup, build, oracle_target
from refimpl.lessons.lossless.stall import Disturb
from refimpl.model.qwen3 import Qwen3


@dataclass(frozen=True)
class RunReport:
    """What one run brought.

    Args:
        setup, seed: which run.
        schedule: the id of the order on ``sim``, which replays it; empty on a GPU.
        requests, tokens: how many were judged.
        near_ties: tokens that were excused.
        wrong: a sentence for each request with a wrong token or a wrong end.
        furthest: the farthest that a token lay below the oracle's best logit.
        retracted: requests sent back to wait.
        verifies, emitted: decode steps of single requests, and the tokens that these emitted.
    """

    setup: Setup
    seed: int
    schedule: str
    requests: int
    tokens: int
    near_ties: int
    wrong: tuple[str, ...]
    furthest: float
    retracted: int
    verifies: int
    emitted: int

    def to_json(self) -> dict[str, Any]:
        """A row for a result file."""
        return {
            "worker": self.setup.worker,
            "variant": self.setup.variant,
            "seed": self.seed,
            "requests": self.requests,
            "tokens": self.tokens,
            "near_ties": self.near_ties,
            "wrong": len(self.wrong),
            "furthest": self.furthest,
            "retracted": self.retracted,
            "verifies": self.verifies,
            "emitted": self.emitted,
        }


class Judge:
    """Runs loads on one engine and compares every greedy token with the oracle's.

    Args:
        built: the engine.
        oracle: its target once more; by default made on the CPU.
    """

    def __init__(self, built: Built, oracle: Qwen3 | None = None) -> None:
        self.built = built
        self.oracle = oracle_target(built.setup) if oracle is None else oracle

    def run(self, shape: LoadShape, seed: int, disturb: Disturb | None = None) -> RunReport:
        """One load, drawn from a seed; on ``sim`` under the adversary of the same seed.

        Args:
            shape: of the load.
            seed: of the load, and of the order.
            disturb: makes what is called between the turns of the loop; None for nothing.

        Raises:
            LeakError: rows or slots are missing afterwards.
        """
        load, scheduler = draw_load(shape, seed), self.built.scheduler
        with _schedule(self.built.setup.device, seed) as order:
            played = play(scheduler, load, None if disturb is None else disturb(scheduler, seed))
        judged = [self._judge(req) for req in played.reqs]
        ends = [wrong_end(req, self.oracle.config.eos_token_id) for req in played.reqs]
        accepted = [(length, times) for req in played.reqs for length, times in req.accept_lens.items()]
        return RunReport(
            setup=self.built.setup,
            seed=seed,
            schedule="" if order is None else order.id,
            requests=len(played.reqs),
            tokens=sum(one.tokens for one in judged),
            near_ties=sum(one.near_ties for one in judged),
            wrong=tuple(_sentences(played.reqs, judged, ends)),
            furthest=max(one.furthest for one in judged),
            retracted=played.retracted,
            verifies=sum(times for _, times in accepted),
            emitted=sum(length * times for length, times in accepted),
        )

    def _judge(self, req: Req) -> Judged:
        if not req.params.greedy:
            return Judged(0, 0, (), 0.0)
        return judge_greedy(self.oracle, req.prompt_ids, req.output_ids)


def wrong_end(req: Req, eos_token_id: int) -> str | None:
    """What is wrong with the way a request ended; None if nothing is."""
    stops = [] if req.params.ignore_eos else [n for n, token in enumerate(req.output_ids) if token == eos_token_id]
    length, most = len(req.output_ids), req.params.max_new_tokens
    match req.finish_reason:
        case FinishReason.STOP:
            right = stops == [length - 1]
        case FinishReason.LENGTH:
            right = length == most and stops in ([], [length - 1])
        case FinishReason.ABORT:
            right = length < most and not stops
        case _:
            right = False
    if right:
        return None
    return f"ended by {req.finish_reason} with {length} of {most} tokens, end-of-text at {stops}"


def campaign(
    workers: Iterable[str], seeds: Iterable[int], shape: LoadShape, disturb: Disturb | None = None, **fields: Any
) -> Iterator[RunReport]:
    """Every worker under every seed; an engine is built once for all seeds of a variant.

    Args:
        workers: names of ``WORKERS``.
        seeds: each gives a load, an order and, in turn, a variant.
        shape: of the loads.
        disturb: as of ``Judge.run``.
        fields: of ``Setup``.
    """
    for setup, dealt in spread(workers, seeds, **fields):
        judge = Judge(build(setup))
        for seed in dealt:
            yield judge.run(shape, seed, disturb)


def spread(workers: Iterable[str], seeds: Iterable[int], **fields: Any) -> Iterator[tuple[Setup, tuple[int, ...]]]:
    """Each worker under every seed, and the variants dealt out to the seeds in turn.

    Args:
        workers: names.
        seeds: all of them.
        fields: of ``Setup``.
    """
    names = tuple(VARIANTS)
    dealt = sorted((seed % len(names), seed) for seed in seeds)
    for worker in workers:
        for index, group in groupby(dealt, key=lambda pair: pair[0]):
            yield Setup(worker, names[index], **fields), tuple(seed for _, seed in group)


def _schedule(device: str, seed: int) -> AbstractContextManager[Any]:
    if device != "sim":
        return nullcontext()
    dev = devices.sim()
    found: AbstractContextManager[Any] = dev.schedule(dev.Adversary(seed=seed))
    return found


def _sentences(reqs: Iterable[Req], judged: Iterable[Judged], ends: Iterable[str | None]) -> Iterator[str]:
    for req, one, end in zip(reqs, judged, ends, strict=True):
        if one.wrong:
            yield f"request {req.rid}, {req.prompt_ids} -> {req.output_ids}: tokens {list(one.wrong)} are wrong"
        if end is not None:
            yield f"request {req.rid}: {end}"
