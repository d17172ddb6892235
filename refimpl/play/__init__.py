"""A stream program with real values: run it in any order on the simulated device, and see what goes wrong."""

from refimpl.play.outcome import Difference, Outcome, compare, outcome
from refimpl.play.played import Contents, Part, Played, Seen, Step
from refimpl.play.player import play

__all__ = [
    "Contents",
    "Difference",
    "Outcome",
    "Part",
    "Played",
    "Seen",
    "Step",
    "compare",
    "outcome",
    "play",
]
