"""A chapter's own measurement: a few seconds on a GPU, and on the simulated device in virtual time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from refimpl import device as devices
from refimpl.lessons.history_timing.cases import Case, Group, Pair
from refimpl.lessons.history_timing.engines import Engines, load
from refimpl.lessons.history_timing.measure import Bench, longest
from refimpl.lessons.history_timing.plan import MODELS, Amounts, Share
from refimpl.lessons.history_timing.rows import FenceRow, PairRow

WEIGHTS = {"cuda": "small", "sim": "nano"}
SHARES = {"cuda": Share(16, rounds=4, steps=16), "sim": Share(4, rounds=1, steps=4)}


def timed(cases: Sequence[Case], device: str | None = None) -> list[FenceRow]:
    """Each case at one batch size, taking turns, on weights that are there at once.

    Args:
        cases: presets with drafts, and what is added to their turns.
        device: `cuda` or `sim`; None: the best one.

    Order:
        The host blocks until the device is idle.
    """
    rows, _ = compared(cases, (), device)
    return rows


def compared(
    cases: Sequence[Case], pairs: Sequence[Pair], device: str | None = None
) -> tuple[list[FenceRow], list[PairRow]]:
    """The same, with steps of some cases set against those of others, round by round.

    Args:
        cases: as for :func:`timed`.
        pairs: of these cases.
        device: `cuda` or `sim`; None: the best one.
    """
    with _bench(device or devices.best(), {case.draft for case in cases}) as bench:
        (share,) = bench.amounts.shares
        return bench.measured(Group(share, tuple(cases), tuple(pairs)))


@contextmanager
def _bench(device: str, drafts: set[str]) -> Iterator[Bench]:
    amounts = _amounts(device)
    subject = load(WEIGHTS[device], device, tuple(sorted(drafts)))
    bench = Bench(Engines(subject, amounts.batches, longest(amounts)), amounts)
    try:
        yield bench
    finally:
        bench.close()


def _amounts(device: str) -> Amounts:
    share = SHARES[device]
    return replace(MODELS[device][WEIGHTS[device]], shares=(share,), swept=share.batch)
