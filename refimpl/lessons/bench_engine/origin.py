"""Where figures come from, as a result says it: of its first run, and of each that was added."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from refimpl.lessons.results import ORIGIN


@dataclass(frozen=True)
class Origin:
    """Where and when figures were measured, and by what command."""

    device: str
    driver: str
    torch: str
    date: str
    command: str

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "Origin":
        """What fields of these names say, whatever else is there."""
        return cls(**{name: found[name] for name in ORIGIN})

    @property
    def words(self) -> str:
        """One line for a reader, as `Measured on NVIDIA H200 (driver 580.159, torch 2.11.0), 2026-11-29`."""
        driver = f"driver {self.driver}, " if self.driver else ""
        verb = "Measured" if self.driver else "Ran"
        return f"{verb} on {self.device} ({driver}torch {self.torch}), {self.date}"
