"""Whether a value that a caller gave is of the kind that its name asks for; a bool is no number here."""

from __future__ import annotations

import reprlib
from numbers import Integral, Real

from refimpl.engine.errors import EngineError


def shown(value: object) -> str:
    """The value as a message repeats it: on one line, and never long.

    Example:
        >>> shown("x" * 1000)
        "'xxxxxxxxxxxx...xxxxxxxxxxxxx'"
    """
    return " ".join(reprlib.repr(value).split())


def check_whole(name: str, value: object) -> None:
    """Raises EngineError unless the value is a whole number, NumPy's included."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise EngineError(f"{name}={shown(value)}: use a whole number")


def check_number(name: str, value: object) -> None:
    """Raises EngineError unless the value is a number, NumPy's included."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise EngineError(f"{name}={shown(value)}: use a number")


def check_flag(name: str, value: object) -> None:
    """Raises EngineError unless the value is True or False."""
    if not isinstance(value, bool):
        raise EngineError(f"{name}={shown(value)}: use True or False")
