"""How much is measured, by device and weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from refimpl.lessons.bench_engine.plan import named

ACCEPT_LEN = 4
"""Tokens of every verify: forced, so that all requests of a batch end in the same step. No fence sees them."""


@dataclass(frozen=True)
class Share:
    """One batch size.

    Args:
        batch: requests that decode together.
        rounds: turns that each case gets.
        steps: steady steps of a turn.

    Raises:
        ValueError: one of them is below 1.
    """

    batch: int
    rounds: int
    steps: int

    def __post_init__(self) -> None:
        if min(self.batch, self.rounds, self.steps) < 1:
            raise ValueError(f"{self}: every number is at least 1")

    def repeated(self, times: int) -> "Share":
        """The same with so many times the rounds: for a difference that is smaller than what a round wanders."""
        return replace(self, rounds=self.rounds * times)


@dataclass(frozen=True)
class Amounts:
    """What is measured on one set of weights.

    Args:
        shares: the batches; an engine is made for the largest.
        swept: the batch at which work is added.
        added_ms: how much of it, for the event and the coarse barrier.
        waited_ms: how much of it, for wait and synchronize.
        chained: drafts with which a chained record is set beside a plain one.
        pair_rounds: how many times the rounds, where two variants are nearly the same.
        forward_repeats: repeats of the forward work alone: enough for a GPU that has rested to come down to the speed
            of one that has not.
        prompt_tokens: of each request.

    Raises:
        ValueError: no batch, or none to add work at.
    """

    shares: tuple[Share, ...]
    swept: int
    added_ms: tuple[float, ...]
    waited_ms: tuple[float, ...]
    chained: tuple[str, ...]
    pair_rounds: int
    forward_repeats: int
    prompt_tokens: int = 16

    def __post_init__(self) -> None:
        if self.swept not in self.batches:
            raise ValueError(f"swept={self.swept}: use one of the batches {self.batches}")

    @property
    def batches(self) -> tuple[int, ...]:
        """The batch sizes, ascending."""
        return tuple(sorted(share.batch for share in self.shares))


DRAFTS = ("dflash", "eagle")
ADDED_MS = (0.2, 0.5, 1.0, 2.0, 3.0)
WAITED_MS = (1.0, 3.0)

SMALL = Amounts(
    shares=(Share(1, 4, 24), Share(16, 4, 24), Share(64, 4, 24)),
    swept=16,
    added_ms=ADDED_MS,
    waited_ms=WAITED_MS,
    chained=DRAFTS,
    pair_rounds=3,
    forward_repeats=10,
)
LARGE = Amounts(
    shares=(Share(1, 3, 12), Share(16, 3, 12), Share(64, 3, 10)),
    swept=16,
    added_ms=ADDED_MS,
    waited_ms=WAITED_MS,
    # The change was made for EAGLE; DFLASH's step at this size would take the time of a part.
    chained=("eagle",),
    pair_rounds=2,
    forward_repeats=20,
)
SIMULATED = Amounts(
    shares=(Share(4, 1, 4),),
    swept=4,
    added_ms=(0.2, 1.0),
    waited_ms=(0.2,),
    chained=DRAFTS,
    pair_rounds=1,
    forward_repeats=1,
)
"""Times on the simulated device are virtual, so a few steps say as much as many."""

MODELS: dict[str, dict[str, Amounts]] = {
    "cuda": {"small": SMALL, "8b": LARGE},
    "sim": {"nano": SIMULATED},
}
"""By device: the weights, those first that take the least time."""


def chosen(device: str, names: Sequence[str] | None) -> dict[str, Amounts]:
    """The weights to measure on a device, in their order; None for all of them.

    Raises:
        UserError: weights that no run on this device measures.
    """
    return named(MODELS[device], device, names)
