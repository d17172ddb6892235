"""What a step cost as of each moment of the fences' history: the host standing still, the step, the idle device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from refimpl.fences import Preset
from refimpl.lessons import markdown, results
from refimpl.lessons.bench_engine.added import origins
from refimpl.lessons.history_timing.cases import PARTS
from refimpl.lessons.history_timing.rows import FenceRow
from refimpl.lessons.history_timing.shown import COMMAND, RESULT, added
from refimpl.lessons.history_timing.shown import saved as timed_rows
from refimpl.lessons.whole_history import SIM, Row, described, provenance, saved

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
        return f"{self.before_ms:.3f} before and {self.after_ms:.3f} after, of {self.step_ms:.3f}"

    @property
    def cells(self) -> tuple[str, ...]:
        """Of a table: held before the launch, after it, the step, the idle share."""
        # Marks of different clocks may add up to more than the step.
        idle = f"{self.idle:.0%}" if self.idle <= 1 else "unclear"
        return *(f"{ms:.3f}" for ms in (self.before_ms, self.after_ms, self.step_ms)), idle


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
    """Two Markdown tables, the simulated device's and the GPU's with large weights: host held, step, idle share.

    A complete run on the GPU times its steps too, but with tiny weights and several processes beside one another.
    These times are about neither a fence nor a device, so they are not told.

    Args:
        presets: in the order of the rows; those that were not timed are counted.
        folder: of the results.
    """
    large = large_steps(folder)
    of_large = {one.name: large[one.name, one.worker] for one in presets if (one.name, one.worker) in large}
    return "\n\n".join(
        [
            *_one("The simulated device, tiny weights", presets, steps(SIM, folder), provenance(SIM, folder)),
            *_one(f"The GPU, weights in the shape of {LARGE}, batch {BATCH}", presets, of_large, _provenance(folder)),
            LEGEND,
        ]
    )


LEGEND = (
    "Milliseconds, medians of steady steps. Held: the host stands still, before the launch or after it. Idle: the "
    "share of the step in which the forward stream has no work."
)


def complete_steps(folder: Path = results.FOLDER) -> tuple[Mapping[str, Step], str]:
    """The simulated device's steps to draw, and the device in words."""
    found = steps(SIM, folder)
    return (found, results.load(SIM, folder).device) if found else ({}, "not measured")


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


def _one(title: str, presets: Sequence[Preset], found: Mapping[str, Step], provenance: str) -> Iterator[str]:
    yield f"**{title}**"
    there = [one for one in presets if one.name in found]
    if there:
        rows = [(described(one), *found[one.name].cells) for one in there]
        yield markdown.table(("preset", "held before", "held after", "step", "idle"), rows, words=1)
    missing = len(presets) - len(there)
    lacks = f"{missing} of {len(presets)} rows were not timed. " if missing and there else ""
    yield f"{lacks}{provenance}"


def _provenance(folder: Path) -> str:
    if not large_steps(folder):
        return f"*Not measured in this version: `{COMMAND}` writes the figures of the {LARGE} weights.*"
    result = results.load(RESULT, folder)
    by_part = (origins(result, part) for part in PARTS)
    used = dict.fromkeys(
        origin for found in by_part for origin, groups in found.items() if any(model == LARGE for _, model, _ in groups)
    )
    return "\n\n".join(f"*{origin.words}: `{results.told(origin.command)}`*" for origin in used)
