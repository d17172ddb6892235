"""Stream Order: an executable reference for GPU stream ordering in overlapped speculative decoding.

Every room of the house is imported by its own name: `from refimpl.program import Program`. Three names stand here too,
since user code says them: `refimpl.record(…)`, `refimpl.touches(…)` and `refimpl.Engine(…)`. Importing `refimpl` itself
imports nothing, so a proof never waits for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from refimpl.device import touches as touches
    from refimpl.record import record as record

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("device", "record"):
        return import_module(f"refimpl.{name}")
    if name == "touches":
        return import_module("refimpl.device").touches
    if name == "Engine":
        return import_module("refimpl.engine").Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
