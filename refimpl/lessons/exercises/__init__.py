"""The exercises of each chapter, one module a chapter; a test proves each of them."""

from importlib import import_module
from pkgutil import iter_modules

from refimpl.lessons.exercise import Exercise


def exercises() -> dict[str, Exercise]:
    """Every exercise by ``chapter/name``, in the order of the chapters' modules."""
    found: dict[str, Exercise] = {}
    for module in iter_modules(__path__):
        chapter = import_module(f"{__name__}.{module.name}")
        found |= {
            f"{module.name}/{value.name}": value for value in vars(chapter).values() if isinstance(value, Exercise)
        }
    return found
