"""What the columns of a row mean: the same words wherever runs of the history are counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from refimpl.fences import Preset
from refimpl.lessons.history.unrepaired import is_repaired

WRONG = "runs with a wrong token in the text, or that ended in a fault"
FAULTS = "Faults: runs that ended in one, which leaves nothing to read; so the count behind them may be the smaller one"
DROPPED = "runs with a wrong token anywhere, those of forwards whose request had ended included"
HELD = "Held before, after: µs in which the host stands still, before a launch and after it, of a steady step"
STEP = "Step: µs of that step"
SHARED = "On a GPU the runs share the device: judge no fence by held and step"


def repaired(presets: Iterable[Preset]) -> tuple[str, ...]:
    """Those in which a repair hides a race; dropped tokens would not show it."""
    return tuple(one.name for one in presets if is_repaired(one.chosen()))


def counts(presets: Sequence[Preset], wrong: str, dropped: str, faults: bool) -> Iterator[str]:
    """What the counts of runs are, a sentence each without its stop.

    Args:
        presets: of the rows.
        wrong, dropped: what the columns of wrong texts and of dropped tokens are called.
        faults: whether there is a column of them.
    """
    yield f"{wrong.capitalize()}: {WRONG}"
    if faults:
        yield FAULTS
    names = ", ".join(repaired(presets))
    otherwise = f" (of {names}: runs made again with the repair left out, and wrong then)" if names else ""
    yield f"{dropped.capitalize()}: {DROPPED}{otherwise}"


def told(sentences: Iterable[str]) -> str:
    """Sentences without their stops as a paragraph."""
    return " ".join(f"{sentence}." for sentence in sentences)
