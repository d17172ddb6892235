"""Pieces of work on a preset, as data: they are asked of other processes, and answered row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import torch

from refimpl import device as devices
from refimpl.fences import preset
from refimpl.lessons import provenance
from refimpl.lessons.history.recorded import races, recorded
from refimpl.lessons.history.runner import Runner
from refimpl.lessons.history.subject import Subject, build, subject_of
from refimpl.lessons.history.timed import timed

Row = dict[str, Any]
READY: Row = {"ready": True}
"""The engine is built: what goes wrong from here on is a run's."""
END: Row = {"end": True}
"""Behind the last row of a task."""


class Do(StrEnum):
    """What to do: run loads under unkind orders, the same on the control, have the checker look at a recording, time
    steady steps, or say which machine it is."""

    RUNS = "runs"
    CONTROL = "control"
    RACES = "races"
    COST = "cost"
    MACHINE = "machine"


@dataclass(frozen=True)
class Task:
    """One piece of work.

    Args:
        do: what.
        preset: on which.
        models, device: with and on what.
        seeds: of its runs.
    """

    do: Do
    preset: str
    models: str
    device: str
    seeds: tuple[int, ...] = ()

    @property
    def subject(self) -> Subject:
        """The engine that it is about."""
        found = subject_of(preset(self.preset), self.models, self.device)
        return found.control if self.do is Do.CONTROL else found

    def to_json(self) -> Row:
        """As it is sent."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Row) -> Task:
        """As it was sent."""
        return cls(**{**row, "do": Do(row["do"]), "seeds": tuple(row["seeds"])})


def answers(task: Task) -> Iterator[Row]:
    """Does it: a row for each run, behind :data:`READY`; for each kind of race; or one for all."""
    match task.do:
        case Do.RUNS | Do.CONTROL:
            runner = Runner(task.subject)
            yield READY
            yield from (asdict(runner.run(seed)) for seed in task.seeds)
        case Do.RACES:
            yield from map(asdict, races(recorded(task.subject)))
        case Do.COST:
            cost = timed(build(task.subject))
            yield from [] if cost is None else [asdict(cost)]
        case Do.MACHINE:
            # A GPU is known by its name once it is in use.
            devices.get(task.device)
            torch.zeros(1, device=task.device)
            yield asdict(provenance.this_machine())
