"""Fourteen ways to order streams wrongly, each beside the line that puts it right, in one text for both devices.

Example:
    >>> from refimpl.lessons.footguns import FOOTGUNS
    >>> FOOTGUNS["raw"].run("sim", fenced=True)
    [7, 7, 7, 7]
"""

from refimpl.lessons.footguns.graphs import GRAPHS
from refimpl.lessons.footguns.kit import Footgun, Setting, Values
from refimpl.lessons.footguns.memory import MEMORY
from refimpl.lessons.footguns.streams import STREAMS

FOOTGUNS = {footgun.name: footgun for footgun in (*STREAMS, *MEMORY, *GRAPHS)}
"""By name, in the order in which a reader meets them."""

__all__ = ["FOOTGUNS", "Footgun", "Setting", "Values"]
