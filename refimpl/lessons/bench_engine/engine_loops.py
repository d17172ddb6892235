"""Our engine as a loop beside its peers: requests that all decode together, timed by the host's clock."""

from collections.abc import Callable

from refimpl.lessons.bench_engine.drive import Loop, run_to_end
from refimpl.lessons.bench_engine.loops import Steps
from refimpl.lessons.bench_engine.observed import observed
from refimpl.lessons.bench_engine.subject import PLAIN, Subject
from refimpl.lessons.bench_engine.workload import Workload


def engine_name(draft: str, loop: Loop = Loop.OVERLAP) -> str:
    """What a row calls it."""
    return f"refimpl, {'plain' if draft == PLAIN else draft}, {loop}"


def engine(
    subject: Subject, draft: str, work: Workload, most: int | None = None, loop: Loop = Loop.OVERLAP
) -> Callable[[], Steps]:
    """What runs a workload once.

    Args:
        subject, draft: which scheduler.
        work: the requests.
        most: requests that the scheduler is made for; as many as there are by default.
        loop: which loop.
    """
    scheduler = subject.scheduler(draft, most or work.requests)

    def run() -> Steps:
        reqs = subject.requests(work)
        with observed(scheduler) as watch:
            run_to_end(scheduler, reqs, loop)
        verifies = sum(req.accept_lens.total() for req in reqs)
        tokens = sum(length * times for req in reqs for length, times in req.accept_lens.items())
        return Steps([step.us / 1000 for step in watch.steady(work.requests)], tokens / verifies)

    return run
