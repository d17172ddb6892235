"""Gives a scheduler requests and counts what comes out: all at once, or as earlier ones leave."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from refimpl import device as devices
from refimpl.engine.output_processor import Output
from refimpl.engine.request import Req, SamplingParams
from refimpl.engine.scheduler import Scheduler
from refimpl.lessons.bench_engine.workload import Workload


class Loop(StrEnum):
    """Which of a scheduler's loops runs."""

    OVERLAP = "event_loop_overlap"
    NORMAL = "event_loop_normal"

    def start(self, scheduler: Scheduler) -> Iterator[list[Output]]:
        """The loop, not yet begun."""
        return scheduler.event_loop_overlap() if self is Loop.OVERLAP else scheduler.event_loop_normal()


@dataclass(frozen=True)
class Served:
    """What came out while the batch was full.

    Args:
        tokens: of all requests.
        us: host time that it took.
        begin_us, end_us: when, by the host's clock.
    """

    tokens: int
    begin_us: float
    end_us: float

    @property
    def us(self) -> float:
        """How long it took."""
        return self.end_us - self.begin_us


def requests(work: Workload, prompts: Sequence[Sequence[int]]) -> list[Req]:
    """Greedy requests of a workload that end by length alone.

    Args:
        work: how far each is decoded.
        prompts: token ids, one for each request.
    """
    params = [
        SamplingParams(max_new_tokens=tokens, seed=index, ignore_eos=True)
        for index, tokens in enumerate(work.lengths())
    ]
    return [Req(rid, list(ids), of) for rid, (ids, of) in enumerate(zip(prompts, params, strict=True))]


def run_to_end(scheduler: Scheduler, reqs: Sequence[Req], loop: Loop = Loop.OVERLAP) -> None:
    """All of these requests at once."""
    scheduler.inbox.extend(reqs)
    for _ in loop.start(scheduler):
        pass


def serve(scheduler: Scheduler, reqs: Sequence[Req], concurrency: int, loop: Loop) -> Served:
    """As many requests at a time as `concurrency`: when one leaves, the next one arrives.

    What is counted begins when the first of them leaves, and ends when the last one arrives: the batch is full, and
    arrivals and departures go on.

    Args:
        scheduler: with room for that many.
        reqs: more than `concurrency`.
        concurrency: requests that decode together.
        loop: which loop.

    Raises:
        ValueError: too few requests.
    """
    if len(reqs) <= concurrency + 1:
        raise ValueError(f"{len(reqs)} requests, {concurrency} at a time: none would arrive, so give more")
    waiting = deque(reqs)
    scheduler.inbox.extend(waiting.popleft() for _ in range(concurrency))
    tokens, begin_us, end_us = 0, None, None
    for outputs in loop.start(scheduler):
        if begin_us is not None and end_us is None:
            tokens += sum(len(output.token_ids) for output in outputs)
        left = sum(output.finish_reason is not None for output in outputs)
        if left and begin_us is None:
            begin_us = devices.host_clock_us(scheduler.device)
        for _ in range(min(left, len(waiting))):
            scheduler.inbox.append(waiting.popleft())
        if not waiting and end_us is None:
            end_us = devices.host_clock_us(scheduler.device)
    assert begin_us is not None, "every request left"
    assert end_us is not None, "every request arrived"
    return Served(tokens, begin_us, end_us)
