"""How often each footgun goes off, beside its fixed form, in one run.

On the simulated device each run is another legal order, drawn by a seed, and the order that broke it has an id. On a
GPU the stream that must lag behind is stalled, so that a missing fence shows, and a fixed form that is right is right
under the same stall.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from refimpl import device as devices
from refimpl.lessons.footguns import FOOTGUNS, Footgun
from refimpl.order import Hazard


@dataclass(frozen=True)
class Row:
    """One footgun on one device.

    Args:
        name, hazard, words: of the footgun.
        racy_wrong, fixed_wrong: runs of each form that gave another value than the right one.
        runs: of each form.
        right: what comes out if all is ordered.
        got: what the first wrong run of the racy form gave; None if all were right.
        schedule: the id of that run's order, on the simulated device.
    """

    name: str
    hazard: Hazard
    words: str
    racy_wrong: int
    fixed_wrong: int
    runs: int
    right: list[int]
    got: list[int] | None
    schedule: str | None


def measure(
    device: str, runs: int, names: Iterable[str] = FOOTGUNS, say: Callable[[str], None] = lambda words: None
) -> list[Row]:
    """Runs both forms of each footgun ``runs`` times, interleaved.

    Args:
        device: ``"cuda"``, where streams are stalled, or ``"sim"``, where seeds 0 to ``runs - 1`` draw the orders.
        runs: of each form.
        names: which footguns.
        say: is told how far it is.
    """
    rows = []
    for name in names:
        say(f"{name}: {runs} runs of each form on {device}")
        rows.append(_row(device, runs, FOOTGUNS[name]))
    return rows


def _row(device: str, runs: int, footgun: Footgun) -> Row:
    footgun.run(device, fenced=True)  # a kernel's first launch waits for the GPU, and hides the race
    wrong = {False: 0, True: 0}
    first: tuple[list[int], str | None] | None = None
    for seed in range(runs):
        for fenced in (False, True):
            got, schedule = _one(device, seed, footgun, fenced)
            wrong[fenced] += got != footgun.right
            if not fenced and got != footgun.right and first is None:
                first = got, schedule
    return Row(
        footgun.name,
        footgun.hazard,
        footgun.words,
        wrong[False],
        wrong[True],
        runs,
        footgun.right,
        first[0] if first else None,
        first[1] if first else None,
    )


def _one(device: str, seed: int, footgun: Footgun, fenced: bool) -> tuple[list[int], str | None]:
    """What came out of one run, and the id of its order."""
    if device != "sim":
        return footgun.run(device, fenced), None
    dev = devices.get(device)
    with dev.schedule(dev.Adversary(seed)) as order:
        got = footgun.run(device, fenced)
    return got, str(order.id)


def rows_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows as JSON values."""
    return [asdict(row) for row in rows]
