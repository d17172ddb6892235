"""One group of cases, taking turns."""

import statistics

from refimpl.lessons.bench_engine.drive import Loop, run_to_end
from refimpl.lessons.bench_engine.forward_only import forward_stream_ms, forward_work
from refimpl.lessons.bench_engine.host_reference import HostReference
from refimpl.lessons.bench_engine.observed import Watch, observed
from refimpl.lessons.bench_engine.workload import Workload
from refimpl.lessons.history_timing.added_work import ScheduleWork
from refimpl.lessons.history_timing.cases import Case, Group
from refimpl.lessons.history_timing.engines import Engines, loop_of
from refimpl.lessons.history_timing.plan import ACCEPT_LEN, Amounts, Share
from refimpl.lessons.history_timing.rows import FenceRow, PairRow, Taken, pair_row

SKIP = 3
"""Steps behind a prefill that are left out: the loop has not filled up yet."""
MARKED_STEPS = 6
"""Idle time is a sum over steps, and it hardly wanders."""
STALL_US = 20_000.0
"""Long enough for the host to queue some steps with their glue, where it is slower than the device."""


class Bench:
    """Measures groups on the engines of one set of weights.

    Args:
        engines: by case.
        amounts: how much.
    """

    def __init__(self, engines: Engines, amounts: Amounts) -> None:
        self.engines, self.amounts = engines, amounts
        self.subject = engines.subject
        self.reference = HostReference(self.subject.device)
        self._forward_ms: dict[tuple[Case, int], float] = {}

    def measured(self, group: Group) -> tuple[list[FenceRow], list[PairRow]]:
        """The rows of a group, each case in turn in every round, and another case first in each.

        Args:
            group: what takes turns.
        """
        batch, cases, name = group.share.batch, group.cases, self.subject.name
        taken = {case: Taken(self._warmed_up_ms(case, group.share)) for case in cases}
        beside = []
        for turn in range(group.share.rounds):
            beside.append(self.reference.us())
            at = turn % len(cases)
            for case in cases[at:] + cases[:at]:
                steps = self._run(case, batch, group.share.steps).steady(batch, SKIP)
                taken[case].rounds.append(steps)
        for case in cases:
            taken[case].marked += self._run(case, batch, MARKED_STEPS, marks=True).steady(batch, SKIP)
        host = statistics.median(beside)
        rows = [taken[case].row(case, name, batch, host) for case in cases]
        pairs = [pair_row(pair, name, batch, taken[pair.case], taken[pair.control]) for pair in group.pairs]
        return rows, pairs

    def close(self) -> None:
        """Gives the engines back; what was measured of their forwards is of them."""
        self._forward_ms.clear()
        self.engines.close()

    def _warmed_up_ms(self, case: Case, share: Share) -> float:
        """The forward work of a case's engine, alone, at the average lengths of a turn.

        Measured once, behind a run that is thrown away. That has half the steps of a turn, so its last is the middle.
        """
        key = (case.engine, share.batch)
        if key not in self._forward_ms:
            scheduler, half = self.engines.scheduler(case), (share.steps + 1) // 2
            queue = forward_work(scheduler, self._run(case.engine, share.batch, half).last_decode(share.batch))
            times = forward_stream_ms(scheduler, queue, self.amounts.forward_repeats, STALL_US)
            self._forward_ms[key] = statistics.median(times)
        return self._forward_ms[key]

    def _run(self, case: Case, batch: int, steps: int, marks: bool = False) -> Watch:
        scheduler, loop = self.engines.scheduler(case), loop_of(case)
        work = Workload(batch, self.amounts.prompt_tokens, new_tokens(steps, loop))
        added = ScheduleWork(scheduler.device, 1000 * case.added_schedule_ms, case.item)
        with observed(scheduler, marks=marks, host_work_us=1000 * case.added_host_ms, schedule_work=added) as watch:
            run_to_end(scheduler, self.subject.requests(work), loop)
        return watch


def longest(amounts: Amounts) -> int:
    """Tokens of the longest request of a run, its prompt included."""
    steps = max(MARKED_STEPS, *(share.steps for share in amounts.shares))
    return amounts.prompt_tokens + max(new_tokens(steps, loop) for loop in Loop)


def new_tokens(steps: int, loop: Loop) -> int:
    """Tokens of a request that has so many steady steps: the prefill brings one, each step as many as are forced.

    A steady step stands between two others. The overlapped loop's last one is the redundant forward, which brings none.
    """
    others = SKIP + (1 if loop is Loop.OVERLAP else 2)
    return 1 + ACCEPT_LEN * (steps + others)
