"""The engine's own page: the latest fences, one that waits longer, two that are left out, and the control."""

from __future__ import annotations

from refimpl.fences import Load
from refimpl.lessons.timelines import steps
from refimpl.program import Explorable

PRESETS = ("one-at-a-time", "latest", "coarse", "no-publish", "no-barrier")
"""Rows of the history; the first is the control that the others are compared with."""


def engine_steps() -> Explorable:
    """The variants side by side, recorded in a fresh process; takes some ten seconds."""
    return steps.engine_steps(PRESETS, Load.STEADY, first="latest")
