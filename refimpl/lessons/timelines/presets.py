"""The engine of a preset recorded on either device, and what the checker says of its program."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from refimpl.fences import Preset, preset
from refimpl.lessons.history.loads import draw
from refimpl.lessons.history.subject import Subject, build, subject_of
from refimpl.lessons.timelines.kernels import kernels_as_operators
from refimpl.lessons.timelines.naming import base
from refimpl.lessons.timelines.record import Recorded, record_load
from refimpl.order import check
from refimpl.record import record

SEED = 0
"""Of the requests that are recorded."""


@dataclass(frozen=True)
class Verdict:
    """What is found in one recording.

    Args:
        verdict: ``"ok"`` or ``"race"``.
        races: hazards, each with its buffer, by its name without a number: ``"WAR on req_to_token"``.
        widened: where more bytes are counted than were touched.
        handovers: turns in which a row changed hands.
        ops: of the program.
    """

    verdict: str
    races: tuple[str, ...]
    widened: tuple[str, ...]
    handovers: int
    ops: int


def recorded_preset(one: Preset, device: str) -> Recorded:
    """A run of a preset's engine, recorded: tiny models, and the load that shows what is at stake.

    Args:
        one: a row of the history.
        device: ``"cuda"`` or ``"sim"``.

    Order:
        The host blocks while graphs are captured, and where the loop does. On a GPU graphs are captured within a
        recording of their own: nobody knows otherwise what a replay touches.
    """
    subject = subject_of(one, device=device)
    load = draw(subject.load, subject.models, SEED)
    with ExitStack() as stack:
        if device == "cuda":
            stack.enter_context(kernels_as_operators())
        return record_load(_built(subject), load)


def verdict_of(recorded: Recorded) -> Verdict:
    """What the checker says of a recording."""
    program = recorded.recording.program()
    report = check(program)
    joined = recorded.recording.joined
    races = {
        f"{race.kind} on {base(name)}"
        for race in report.races
        for name in joined.get(race.bytes.buf, (race.bytes.buf,))
    }
    return Verdict(
        verdict=str(report.verdict),
        races=tuple(sorted(races)),
        widened=recorded.recording.widened,
        handovers=len(recorded.handovers),
        ops=len(program.ops),
    )


def _built(subject: Subject) -> Any:
    if subject.device != "cuda":
        return build(subject).scheduler
    with record(subject.device):
        return build(subject).scheduler


def main() -> None:
    """Prints the verdicts on ``sim``, by preset: for a process that cannot hold it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="+")
    torch.set_num_threads(1)
    names = parser.parse_args().names
    print(json.dumps({name: vars(verdict_of(recorded_preset(preset(name), "sim"))) for name in names}))


if __name__ == "__main__":
    main()
