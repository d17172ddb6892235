"""Some turns of the engine under presets of the history, side by side: recorded, folded, with durations to drag."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from refimpl.engine.scheduler import Scheduler
from refimpl.fences import Expect, Load, Preset, preset
from refimpl.lessons.lossless.setups import Setup, build
from refimpl.lessons.timelines.folded import HOST, Turns, folded
from refimpl.lessons.timelines.loads import CONTEXT, ROWS, small_load
from refimpl.lessons.timelines.naming import KV_TRANSFER, PREFILL
from refimpl.lessons.timelines.record import record_load
from refimpl.program import (
    EventRecord,
    Explorable,
    Launch,
    Param,
    Program,
    UserError,
    Variant,
    program_from_json,
)

STEADY = 4
"""The first turn shown of a steady load: the prefill is over, and each step finds what a step before it left."""
BEFORE_HANDOVER = 2
"""Turns shown before the one in which a row changes hands: the forward that reads it is among them."""
SHOWN = 4
HOST_US = 60.0
"""Host work of a turn besides its calls, which the simulated device does not charge for."""
MOST_US, STEP_US = 1000.0, 2.0
"""How far a reader may drag a duration, and in which steps."""
PROCESSES = 2
"""That record side by side: as many as a small machine has cores."""
_ASIDE = ("copy_done", KV_TRANSFER)
"""How the names of events begin that no variant differs in."""
_BY_EVENTS = (Load.PREBUILT, Load.ABORTS, Load.HANDOVER, Load.STEADY)


def engine_steps(names: Sequence[str], load: Load | None = None, first: str | None = None) -> Explorable:
    """Presets side by side, each recorded from an engine of its own in a fresh process; some seconds each.

    Args:
        names: of presets; the first is what others are compared with.
        load: what all of them decode; None for the most eventful one that a preset of them names.
        first: the preset shown first; None for the last.

    Raises:
        UserError: an unknown name.
        RuntimeError: a recording failed.
    """
    presets = _presets(names)
    shown = load or next(one for one in _BY_EVENTS if any(preset.load is one for preset in presets))
    return explorable(recorded_apart(names, shown), first or names[-1])


def recorded_apart(names: Sequence[str], load: Load | None = None) -> dict[str, Program]:
    """The folded recordings by preset, made by processes of their own: one that uses a GPU cannot hold ``sim``.

    Args:
        names: of presets.
        load: what they decode; None for each preset's own.

    Raises:
        RuntimeError: one of them failed.
    """
    shares = [share for at in range(PROCESSES) if (share := names[at::PROCESSES])]
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = dict(one for share in pool.map(lambda share: _recorded_blocking(share, load), shares) for one in share)
    return {name: found[name] for name in names}


def _recorded_blocking(names: Sequence[str], load: Load | None) -> list[tuple[str, Program]]:
    command = [sys.executable, "-m", "refimpl.lessons.timelines", *([f"--load={load}"] if load else []), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"recording the engine failed: {(done.stderr.strip().splitlines() or ['no words'])[-1]}")
    return [(name, program_from_json(found)) for name, found in json.loads(done.stdout).items()]


def explorable(programs: Mapping[str, Program], first: str) -> Explorable:
    """Folded recordings by preset, with the durations that a reader may change.

    Args:
        programs: the first is what others are compared with.
        first: the one shown first.
    """
    presets = _presets(list(programs))
    return Explorable(
        id="engine_" + "_".join(programs),
        title="Steps of the engine",
        words=f"Recorded from the engine: nano weights, {' and '.join(dict.fromkeys(p.worker for p in presets))}.",
        variants=tuple(Variant(one.name, label_of(one), words_of(one), programs[one.name]) for one in presets),
        params=_params(programs.values()),
        initial=first,
        before=next(iter(programs)),
        topic=_topic(programs.values()),
        hero="forward",
        step_op="verify" if any(_has(program, "verify 1") for program in programs.values()) else "decode",
    )


def recorded_steps(one: Preset, load: Load | None = None) -> Program:
    """The folded recording of a preset, made in this process, which must not use a GPU.

    Args:
        one: a row of the history.
        load: what it decodes; None for its own.
    """
    decoded = load or one.load
    scheduler = small_scheduler(one)
    found = record_load(scheduler, small_load(decoded))
    first = STEADY if decoded is Load.STEADY else found.handovers[0] - BEFORE_HANDOVER
    graphs = [runner.name for runner in scheduler.worker.runners()]
    program = found.recording.program(id=f"engine/{one.name}", words=words_of(one))
    turns = Turns(first, SHOWN, HOST_US, (*graphs, PREFILL))
    return folded(program, found.recording.regions, turns, found.recording.joined)


def small_scheduler(one: Preset) -> Scheduler:
    """An engine of a preset with nano weights on the simulated device, for the loads of a timeline."""
    variant = "sliding window" if one.window else "overlap"
    options = {"fences": one.chosen(), **one.engine}
    setup = Setup(one.worker, variant, "nano", max_running_requests=ROWS, max_context=CONTEXT, options=options)
    return build(setup).scheduler


def label_of(one: Preset) -> str:
    """What a preset is called on screen: ``"before #25465"`` of ``"before-25465"``."""
    return re.sub(r"\b(\d{5})\b", r"#\1", one.name).replace("-", " ")


def words_of(one: Preset) -> str:
    """A preset in a sentence or two: when, what is true of it and why, and what hides it."""
    when = f"{one.date}" if one.pr is None or one.experiment else f"PR {one.pr}, {one.date}"
    masked = f" Hidden by {one.masked_by}." if one.expect is Expect.RACY_MASKED else ""
    return f"{when}: {one.why}.{masked}"


def _presets(names: Sequence[str]) -> list[Preset]:
    try:
        return [preset(name) for name in names]
    except KeyError as error:
        raise UserError(error.args[0]) from None


def _params(programs: Iterable[Program]) -> dict[str, Param]:
    """Host work, and each graph and prefill with the time that the simulated device charges for it."""
    work = [op for program in programs for op in program.ops if isinstance(op, Launch) and op.param is not None]
    sliders: dict[str, Param] = {HOST: Param("host work", HOST_US, 0.0, MOST_US, STEP_US)}
    for op in work:
        if op.us is not None and op.param is not None and op.param not in sliders:
            sliders[op.param] = Param(op.param, op.us, 0.0, max(MOST_US, op.us), STEP_US)
    return sliders


def _topic(programs: Iterable[Program]) -> tuple[str, ...]:
    """Events that not every variant has, or that are recorded elsewhere."""
    events = [{op.event for op in program.ops if isinstance(op, EventRecord)} for program in programs]
    all_of_them = set[str]().union(*events)
    apart = {event for event in all_of_them if not all(event in there for there in events)}
    return tuple(sorted(event for event in apart or all_of_them if not event.startswith(_ASIDE)))


def _has(program: Program, name: str) -> bool:
    return any(isinstance(op, Launch) and op.name == name for op in program.ops)
