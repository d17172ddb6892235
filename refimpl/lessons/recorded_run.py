"""``recorded_runs``: whole runs of the engine as of moments of the history, with the times at which things ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from refimpl import device as devices
from refimpl.fences import Load, Preset, preset
from refimpl.lessons.lossless.play import play_unchecked
from refimpl.lessons.timelines.loads import small_load
from refimpl.lessons.timelines.naming import name_late, name_step, name_things, regions
from refimpl.lessons.timelines.steps import small_scheduler
from refimpl.lessons.trace_overlap import merged
from refimpl.program import Program, Span, SpanKind, Trace, label
from refimpl.record import record

STEPS = 12
"""Decode steps of a chapter's profile."""
WEIGHTS = "small"
LAST = "device_sync"
"""Ours, behind the run."""
SHOWN = (SpanKind.RUN, SpanKind.WAIT, SpanKind.BLOCKED, SpanKind.HOST)


def recorded_runs(names: Sequence[str], device: str | None = None) -> dict[str, Trace]:
    """A run of each preset: under torch's profiler on a GPU, in the simulated device's own times elsewhere.

    Args:
        names: of presets whose workers draft.
        device: ``"cuda"`` or ``"sim"``; None: the best one.

    Order:
        The host blocks until the device is idle. Whoever looks on slows the host down, so these are no measurements.
    """
    one_run = _profiled if (device or devices.best()) == "cuda" else _simulated
    return {name: one_run(preset(name)) for name in names}


def _profiled(one: Preset) -> Trace:
    from refimpl.lessons.profile_engine import Length, profiled
    from refimpl.timeline import from_profiler

    with TemporaryDirectory() as folder:
        file = profiled(one, WEIGHTS, Length(steps=STEPS), Path(folder) / "trace.json")
        return from_profiler(file)


def _simulated(one: Preset) -> Trace:
    """In virtual time, with nano weights; a run before it has captured the graphs."""
    scheduler, load, dev = small_scheduler(one), small_load(Load.STEADY), devices.get("sim")
    play_unchecked(scheduler, load)
    with dev.schedule(dev.Timed()), record("sim") as recording, regions(scheduler):
        name_things(recording, scheduler)
        play_unchecked(scheduler, load, lambda turn: name_step(recording, scheduler, turn - 1))
        name_late(recording, scheduler, prebuilt=False)
        dev.synchronize()
    trace, program, of_methods = recording.trace(), recording.program(), recording.regions
    named = [_named(span, program, of_methods) for span in trace.spans if span.kind in SHOWN]
    return replace(trace, spans=tuple(span for span in merged(named) if span.name != LAST))


def _named(span: Span, program: Program, of_methods: Sequence[str | None]) -> Span:
    """Work by the method of the engine that queued it, calls that block by what they wait for."""
    if span.op is None or span.kind is SpanKind.WAIT:
        return span
    name = label(program.ops[span.op]) if span.kind is SpanKind.BLOCKED else of_methods[span.op] or span.name
    return replace(span, name=name, op=None)
