"""One decoding loop, timed: the form in which our engine and its peers stand side by side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from refimpl.lessons.bench_engine.timing import Spread


@dataclass(frozen=True)
class Steps:
    """What one run of a loop came to.

    Args:
        steps_ms: host time of each step while all requests decode.
        accept_len: tokens that a step adds to a request, on average; 1 where nothing is drafted.
    """

    steps_ms: Sequence[float]
    accept_len: float = 1.0


@dataclass(frozen=True)
class LoopRow:
    """One loop on one model; times in milliseconds over ``n`` steps.

    Args:
        model: which weights.
        loop: whose loop, and how it is set.
        batch: requests that decode together.
        step_ms, step_p10_ms, step_p90_ms: one step.
        accept_len: tokens a step and request.
        tokens_per_s: of all requests together: batch times accept_len over the mean step, so that slow steps count.
        n: steps measured.
    """

    model: str
    loop: str
    batch: int
    step_ms: float
    step_p10_ms: float
    step_p90_ms: float
    accept_len: float
    tokens_per_s: float
    n: int

    @classmethod
    def of(cls, model: str, loop: str, batch: int, runs: Sequence[Steps]) -> "LoopRow":
        """One row of all runs of one loop.

        Raises:
            ValueError: no step was measured.
        """
        steps = [step for run in runs for step in run.steps_ms]
        spread = Spread.of(steps)
        tokens = sum(run.accept_len * len(run.steps_ms) for run in runs)
        return cls(
            model=model,
            loop=loop,
            batch=batch,
            step_ms=spread.median,
            step_p10_ms=spread.p10,
            step_p90_ms=spread.p90,
            accept_len=tokens / len(steps),
            tokens_per_s=1000 * batch * tokens / sum(steps),
            n=spread.n,
        )


def compared(model: str, batch: int, loops: Mapping[str, Callable[[], Steps]], rounds: int) -> list[LoopRow]:
    """Every loop in turn, ``rounds`` times over after a round that is thrown away: it captures and compiles.

    Args:
        model: which weights, for the rows.
        batch: requests of each loop.
        loops: by name, what runs once.
        rounds: how often each is measured.
    """
    for run in loops.values():
        run()
    runs: dict[str, list[Steps]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name, run in loops.items():
            runs[name].append(run())
    return [LoopRow.of(model, name, batch, of) for name, of in runs.items()]
