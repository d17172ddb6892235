"""A calibration: measured figures, each with its spread and its unit, and where they come from; a small JSON file."""

from __future__ import annotations

import json
import math
import os
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from refimpl.program.errors import UserError

ORIGIN = ("device", "driver", "torch", "python", "processor", "date", "command")
DIFFERENCES = ("cross_us", "wake_us", "start_us")
"""Figures that are differences of two measurements, and may come out below zero."""
_SHIPPED = Path(__file__).parent
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_DIGITS = 5


@dataclass(frozen=True)
class Sample:
    """One figure: the median of `n` measurements with the tenth and the ninetieth percentile, in `unit`."""

    median: float
    p10: float
    p90: float
    n: int
    unit: str

    def __post_init__(self) -> None:
        if self.n < 1 or not all(math.isfinite(value) for value in (self.median, self.p10, self.p90)):
            raise ValueError(f"{self}: a figure is finite and the median of one measurement or more")

    @classmethod
    def of(cls, values: Sequence[float], unit: str) -> Sample:
        """The figure for these measurements.

        Example:
            >>> Sample.of([3.0, 1.0, 2.0], "us").median
            2.0
        """
        ordered = sorted(values)
        tenth = len(ordered) // 10
        three = (statistics.median(ordered), ordered[tenth], ordered[-1 - tenth])
        median, p10, p90 = [float(f"{value:.{_DIGITS}g}") for value in three]
        return cls(median, p10, p90, len(ordered), unit)


@dataclass(frozen=True)
class Region:
    """A region launched alone: what it is, and its device time back to back with itself."""

    what: str
    device: Sample


@dataclass(frozen=True)
class Calibration:
    """The figures of one GPU and its host.

    Args:
        origin: Where they come from: the fields of `ORIGIN`.
        samples: By name; `host_costs` and `device_costs` say what each is.
        operators: Host time to launch one, by the operator's name on the simulated device.
        regions: Regions by name.
    """

    origin: Mapping[str, str]
    samples: Mapping[str, Sample]
    operators: Mapping[str, Sample]
    regions: Mapping[str, Region]

    def region(self, name: str) -> Region:
        """The region of this name.

        Raises:
            UserError: There is none.
        """
        if name not in self.regions:
            known = ", ".join(sorted(self.regions)) or "none"
            raise UserError(f"the calibration of {self.origin['device']} has no region {name!r} (there: {known})")
        return self.regions[name]

    def to_json(self) -> dict[str, Any]:
        """The calibration as JSON values."""
        return {
            **self.origin,
            "samples": {name: asdict(sample) for name, sample in self.samples.items()},
            "operators": {name: asdict(sample) for name, sample in self.operators.items()},
            "regions": {name: asdict(region) for name, region in self.regions.items()},
        }

    @classmethod
    def from_json(cls, found: Any) -> Calibration:
        """Reads what `to_json` gives.

        Raises:
            ValueError: It is something else; the sentence names the field.
        """
        _fields(found, (*ORIGIN, "samples", "operators", "regions"), "the calibration")
        for name in ORIGIN:
            if not isinstance(found[name], str) or not found[name]:
                raise ValueError(f"field {name!r} must say where the figures come from")
        for name in ("samples", "operators", "regions"):
            if not isinstance(found[name], dict):
                raise ValueError(f"field {name!r} must be an object, of figures by name")
        return cls(
            origin={name: found[name] for name in ORIGIN},
            samples={name: _positive(_sample(value, name), name) for name, value in found["samples"].items()},
            operators={name: _positive(_sample(value, name), name) for name, value in found["operators"].items()},
            regions={name: _region(value, name) for name, value in found["regions"].items()},
        )

    def save(self, file: Path) -> None:
        """Writes the file at once or not at all."""
        draft = file.with_name(f"{file.name}.part")
        draft.write_text(json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(draft, file)


def load(source: str | Path) -> Calibration:
    """Reads a calibration.

    Args:
        source: The name of one that is shipped, as "h200", or the path of a file.
    Raises:
        UserError: There is no such calibration, or the file holds something else.
    """
    if not isinstance(source, (str, Path)) or not str(source):
        raise UserError(f"calibration {source!r}: give the name of one that is shipped, as 'h200', or a path")
    if isinstance(source, str) and _NAME.fullmatch(source):
        file = _SHIPPED / f"{source}.json"
        if not file.exists():
            raise UserError(
                f"no calibration {source!r} is shipped (there: {', '.join(shipped()) or 'none'}): "
                "make one with `python -m refimpl calibrate -o FILE` and give its path"
            )
    else:
        file = Path(source)
    try:
        return Calibration.from_json(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise UserError(f"calibration {file}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"calibration {file} cannot be used: {error}") from error


def shipped() -> list[str]:
    """The names of the calibrations that are shipped."""
    return sorted(file.stem for file in _SHIPPED.glob("*.json"))


def _fields(found: Any, names: Sequence[str], where: str) -> None:
    if not isinstance(found, dict) or set(found) != set(names):
        odd = sorted(set(found) ^ set(names)) if isinstance(found, dict) else "no object"
        raise ValueError(f"{where} has other fields than {', '.join(names)}: {odd}")


def _sample(found: Any, where: str) -> Sample:
    _fields(found, ("median", "p10", "p90", "n", "unit"), where)
    numbers = [found[name] for name in ("median", "p10", "p90", "n")]
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in numbers):
        raise ValueError(f"{where} must have numbers for median, p10, p90 and n")
    try:
        return Sample(**found)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _positive(sample: Sample, where: str) -> Sample:
    """`sample`, of which a time is not below zero and a rate is above it."""
    is_rate = sample.unit != "us"
    if where not in DIFFERENCES and (sample.median < 0.0 or (is_rate and not sample.median)):
        raise ValueError(f"{where} has the median {sample.median}, which is no {'rate' if is_rate else 'time'}")
    return sample


def _region(found: Any, where: str) -> Region:
    _fields(found, ("what", "device"), where)
    return Region(str(found["what"]), _sample(found["device"], where))
