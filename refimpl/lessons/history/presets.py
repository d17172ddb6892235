"""``run_presets``: what becomes of presets of the history, in processes of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from refimpl.fences import DraftDone, Expect, Preset, history, preset
from refimpl.lessons.history.apart import Apart
from refimpl.lessons.history.hands import Hands
from refimpl.lessons.history.outcome import Gathered, Outcome
from refimpl.lessons.history.subject import check_models
from refimpl.lessons.history.tasks import Do, Task
from refimpl.lessons.lossless.setups import TINY_MODELS
from refimpl.lessons.provenance import Machine
from refimpl.program.errors import UserError

CONTROL_RUNS = 20
"""Of the control, at most: its accept length does not depend on the order."""
TRAINED = "nano"
A_SHARE = 64
"""Runs on `sim` that are dealt out together, at most."""
MOST = {"runs": 100_000, "racy_runs": 100_000, "workers": 64}
"""More is a slip of the keyboard: all runs are dealt out before the first, and each worker is a process."""

Progress = Callable[[int, int], None]
"""Called with the runs done, and with those there are to do."""


@dataclass(frozen=True)
class Plan:
    """How presets are run.

    Args:
        device: ``"sim"`` or ``"cuda"``.
        models: ``"tiny"``, ``"nano"`` or ``"small"``.
        runs: of each preset.
        workers: processes side by side.
        racy_runs: of each preset with a race, which one order shows; None: as many as of the others.

    Raises:
        UserError: unknown models, or no run or no worker, or more than :data:`MOST` of them.
    """

    device: str
    models: str
    runs: int
    workers: int = 2
    racy_runs: int | None = None

    def __post_init__(self) -> None:
        check_models(self.models)
        for name, most in MOST.items():
            number = getattr(self, name)
            if number is not None and not 1 <= number <= most:
                raise UserError(f"{name.replace('_', ' ')} {number}: give a whole number from 1 to {most}")

    def runs_of(self, preset: Preset) -> int:
        """How often a preset runs."""
        return self.runs if self.racy_runs is None or preset.expect is Expect.RIGHT else self.racy_runs

    def models_of(self, preset: Preset) -> str:
        """The weights that a preset runs with: trained ones where a draft's cache is at stake and no text.

        The tiny drafts guess by the last token, so that what spoils their cache spoils no guess.
        """
        only_acceptance = preset.chosen().draft_done is DraftDone.REPAIRED_EXTEND
        return TRAINED if only_acceptance and self.models == TINY_MODELS else self.models

    def tasks(self, preset: Preset) -> Iterator[Task]:
        """All that is to be done for a preset."""
        models, runs = self.models_of(preset), self.runs_of(preset)
        where = (preset.name, models, self.device)
        # Recorded on sim whichever device runs: the order of the calls is the same, and the checker needs no GPU.
        yield Task(Do.RACES, preset.name, models, "sim")
        yield Task(Do.COST, *where)
        yield Task(Do.CONTROL, *where, tuple(range(min(runs, CONTROL_RUNS))))
        share = self._share(runs)
        for begin in range(0, runs, share):
            yield Task(Do.RUNS, *where, tuple(range(begin, min(begin + share, runs))))

    def _share(self, runs: int) -> int:
        """Runs of a task: of a GPU all, since an engine takes long to build there; else few runs are shared evenly."""
        if self.device != "sim":
            return runs
        return A_SHARE if runs > A_SHARE else -(-runs // self.workers)


def machine_of(plan: Plan) -> Machine:
    """The machine that a plan's processes run on; this process need not touch its device."""
    task = Task(Do.MACHINE, history()[0].name, plan.models, plan.device)
    hand = Apart()
    try:
        return Machine(**next(hand.rows(task)))
    finally:
        hand.close()


def run_preset(
    name: str,
    device: str = "sim",
    models: str = "tiny",
    runs: int = 20,
    workers: int = 2,
    progress: Progress | None = None,
) -> Outcome:
    """Runs one preset, as :func:`run_presets` does."""
    with closing(run_presets([preset(name)], Plan(device, models, runs, workers), progress)) as outcomes:
        return next(outcomes)


def run_presets(
    presets: Sequence[Preset], plan: Plan, progress: Progress | None = None, hands: Hands | None = None
) -> Generator[Outcome, None, None]:
    """Runs presets, and yields what came of each when its last piece is done.

    Args:
        presets: which.
        plan: how.
        progress: told of each run.
        hands: processes that are there already, and stay; None: the plan's workers, which end with the runs.

    Raises:
        UserError: an engine cannot be built, or its process ended outside of a run; the sentence says which.

    Order:
        The runs are other processes'. The host waits for them.
    """
    tasks = [task for one in presets for task in plan.tasks(one)]
    # Those on sim first, where the others are on a GPU: they are the short ones.
    tasks.sort(key=lambda task: task.device == plan.device != "sim")
    left = Counter(task.preset for task in tasks)
    gathered = {one.name: Gathered() for one in presets}
    done, of = 0, sum(len(task.seeds) for task in tasks)
    with ExitStack() as stack:
        hands = hands or stack.enter_context(closing(Hands(plan.workers)))
        news = stack.enter_context(closing(hands.done(tasks)))
        for task, row in news:
            if isinstance(row, Exception):
                if task.do is Do.COST and preset(task.preset).expect is Expect.RACY_HARMFUL:
                    # Nothing stalls its streams there, and it died all the same: it costs nothing that can be told.
                    continue
                raise UserError(str(row)) from row
            if row is not None:
                gathered[task.preset].take(task.do, row)
                done += bool(task.seeds)
                if progress is not None:
                    progress(done, of)
                continue
            left[task.preset] -= 1
            if not left[task.preset]:
                yield gathered[task.preset].outcome(preset(task.preset), plan.device, task.models)
