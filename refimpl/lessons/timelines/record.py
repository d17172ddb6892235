"""The engine while it decodes a load, recorded: its streams' work under the names of its own text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

from refimpl import device as devices
from refimpl.lessons.lossless.play import Played, play_unchecked, prefilled_blocking
from refimpl.lessons.timelines.naming import name_late, name_step, name_things, regions
from refimpl.record import Recording, record

if TYPE_CHECKING:
    from refimpl.engine.request import Req
    from refimpl.engine.scheduler import Scheduler
    from refimpl.lessons.lossless.load import Arrival

IN_ORDER = ""
"""The id of the order of issue, in which every read finds what it should: so a race cannot spoil its own recording."""


@dataclass(frozen=True)
class Recorded:
    """What was recorded.

    Args:
        recording: the program, with its names and regions.
        played: what came of the load.
        handovers: turns in which a row was taken that another request of the load had held.
    """

    recording: Recording
    played: Played
    handovers: tuple[int, ...]


def record_load(scheduler: Scheduler, load: Sequence[Arrival]) -> Recorded:
    """A load as it runs in steady state, recorded: it ran once before, so memory of the first steps is there again.

    Args:
        scheduler: idle; its graphs are captured, on a GPU within a recording.
        load: what it decodes.

    Order:
        The host blocks where the loop does, and until the device is idle at both ends. On ``sim`` each op runs as soon
        as it may, in the order of issue. On a GPU both runs are recorded: a host that takes notes is so slow that a
        missing fence spoils nothing.
    """
    given = prefilled_blocking(scheduler, load)
    with _in_order(scheduler.device):
        with record(scheduler.device) if scheduler.device == "cuda" else nullcontext():
            play_unchecked(scheduler, load, prebuilt=given)
        with record(scheduler.device) as recording, ExitStack() as stack:
            name_things(recording, scheduler)
            stack.enter_context(regions(scheduler))
            rows = stack.enter_context(_rows_of(scheduler))
            recording.step(0)

            def between(turn: int) -> None:
                name_step(recording, scheduler, turn - 1)
                rows.turn = turn
                recording.step(turn)

            played = play_unchecked(scheduler, load, between, given)
            name_late(recording, scheduler, bool(given))
    return Recorded(recording, played, tuple(rows.handovers))


@contextmanager
def _in_order(device: str) -> Iterator[None]:
    dev = devices.get(device)
    if device == "sim":
        with dev.schedule(dev.Replay(IN_ORDER)):
            yield
    else:
        yield


class _Rows:
    """In which turn a row was taken, and whether somebody had it before."""

    def __init__(self, take_row: Callable[[Req], bool]) -> None:
        self.turn = 0
        self.handovers: list[int] = []
        self._take_row = take_row
        self._known = set[int]()

    def take(self, req: Req) -> bool:
        """Takes a row, and notes it."""
        taken = self._take_row(req)
        if taken and req.row in self._known:
            self.handovers.append(self.turn)
        if taken:
            self._known.add(req.row)
        return taken


@contextmanager
def _rows_of(scheduler: Scheduler) -> Iterator[_Rows]:
    rows = _Rows(scheduler.memory.take_row)
    with patch.object(scheduler.memory, "take_row", rows.take):
        yield rows
