"""What a step cost as of each moment of the fences' history: the host standing still, the step, the idle device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from refimpl.fences import Preset
from refimpl.lessons import results
from refimpl.lessons.history_timing.cases import PARTS
from refimpl.lessons.history_timing.rows import FenceRow
from refimpl.lessons.history_timing.shown import COMMAND, RESULT, added
from refimpl.lessons.history_timing.shown import saved as timed_rows
from refimpl.lessons.whole_history import GPU, SIM, Row, named, provenance, saved

LARGE, BATCH = "8b", 16
"""Of the timings: the weights and the batch that stand in the table."""
MS = 1000.0


@dataclass(frozen=True)
class Step:
    """A steady step, in milliseconds; ``idle`` is the share of it in which the forward stream had no work."""

    before_ms: float
    after_ms: float
    step_ms: float
    idle: float

    def __str__(self) -> str:
        idle = f"{self.idle:.0%} idle" if self.idle <= 1 else "idle unclear"
        return f"{self.before_ms:.3f} + {self.after_ms:.3f} of {self.step_ms:.3f}, {idle}"


def steps(name: str, folder: Path = results.FOLDER) -> dict[str, Step]:
    """By preset, what a complete run measured; rows in which no run got that far are left out.

    Args:
        name: of the result.
        folder: of the results.
    """
    found = {preset: _step(row) for preset, row in saved(name, folder).items()}
    return {preset: step for preset, step in found.items() if step is not None}


def large_steps(folder: Path = results.FOLDER) -> dict[tuple[str, str], Step]:
    """By preset and draft, what the timings measured with the large weights at one batch, with nothing added."""
    rows = [row for part in PARTS for row in timed_rows(part, LARGE, folder)]
    return {(row.preset, row.draft): _timed(row) for row in rows if row.batch == BATCH and added(row) == "–"}


def table(presets: Sequence[Preset], folder: Path = results.FOLDER) -> str:
    """Rows as a Markdown table: held before the launch and after it, of a step, and the idle share; by device.

    Args:
        presets: in the order of the rows.
        folder: of the results.
    """
    sim, gpu, large = steps(SIM, folder), steps(GPU, folder), large_steps(folder)
    head = ("date", "preset", "sim", "GPU, the same weights", f"GPU, {LARGE}, batch {BATCH}")
    lines = [head, ("---",) * len(head)]
    for one in presets:
        figures = (sim.get(one.name), gpu.get(one.name), large.get((one.name, one.worker)))
        lines.append((one.date, named(one), *(f"{step or '–'}" for step in figures)))
    body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return "\n\n".join([body, LEGEND, *_provenance(folder)])


LEGEND = (
    "Milliseconds, medians of steady steps: the host standing still before the launch + after it, of a step; and the "
    "share of it in which the forward stream has no work; unclear where its marks add up to more than the step. A "
    "dash: not measured."
)


def complete_steps(folder: Path = results.FOLDER) -> tuple[Mapping[str, Step], str]:
    """The steps to draw, and in words on which device: the simulated one's, or the GPU's while there are none."""
    for name in (SIM, GPU):
        found = steps(name, folder)
        if found:
            return found, results.load(name, folder).device
    return {}, "not measured"


def large_complete(presets: Sequence[Preset], folder: Path = results.FOLDER) -> tuple[Mapping[str, Step], str]:
    """The same of the large weights.

    Args:
        presets: those that were not timed are left out.
        folder: of the results.
    """
    large = large_steps(folder)
    found = {one.name: large[one.name, one.worker] for one in presets if (one.name, one.worker) in large}
    if not found:
        return {}, "not measured"
    return found, f"{LARGE}, batch {BATCH}, on {results.load(RESULT, folder).device}"


def _step(row: Row) -> Step | None:
    held = row["host_blocked_us"]
    if row["step_us"] is None:
        return None
    return Step(held["before_launch"] / MS, held["after_launch"] / MS, row["step_us"] / MS, row["gpu_idle"])


def _timed(row: FenceRow) -> Step:
    return Step(row.before_us / MS, row.after_us / MS, row.step_ms, row.idle_share)


def _provenance(folder: Path) -> Iterator[str]:
    yield from (provenance(name, folder) for name in (SIM, GPU))
    if not large_steps(folder):
        yield f"*Not measured in this version: `{COMMAND}` writes the figures of the {LARGE} weights.*"
        return
    result = results.load(RESULT, folder)
    yield f"*{result.device} (driver {result.driver}, torch {result.torch}), {result.date}: `{result.command}`*"
