"""Hazards of a row in few words: each kind on each buffer once, and memory that nobody named in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from refimpl.lessons.timelines.naming import base

MOST = 3
"""Hazards that a row names; more of them are counted."""
UNNAMED = "unnamed memory of a step"
_NUMBER_ALONE = re.compile(r"(device|pinned|pageable|memory|block)\d+")
"""What a recording calls memory that no text of the engine names."""


def named(races: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Each kind of hazard on each buffer once, whatever the turn: ``"WAR on req_to_token"``.

    Args:
        races: the kind and the buffer of each, as the checker calls them.

    Example:
        >>> named([("RAW", "seq_lens of turn 1"), ("RAW", "seq_lens of turn 2"), ("RAW", "memory4")])
        ('RAW on seq_lens', 'RAW on unnamed memory of a step')
    """
    return tuple(dict.fromkeys(f"{kind} on {_in_words(base(buffer))}" for kind, buffer in races))


def few(names: Sequence[str]) -> str:
    """The first of them, and how many more there are; ``"none"`` for none.

    Example:
        >>> few(["WAR on a", "RAW on b", "RAW on c", "RAW on d"])
        'WAR on a, RAW on b, RAW on c and 1 more'
    """
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more or "none"


def _in_words(buffer: str) -> str:
    return UNNAMED if _NUMBER_ALONE.fullmatch(buffer) else buffer
