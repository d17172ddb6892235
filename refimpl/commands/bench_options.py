"""Options of `python -m refimpl bench`, read: each wrong one is a sentence."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from refimpl.program.errors import UserError

if TYPE_CHECKING:
    from refimpl.lessons.bench_engine.plan import Amounts as EngineAmounts
    from refimpl.lessons.history_timing.plan import Amounts as FenceAmounts

SECONDS = 600.0


def parts(args: argparse.Namespace) -> tuple[str, ...]:
    """Which parts of a benchmark that runs the engine are measured."""
    from refimpl.lessons.bench_engine.report import PARTS as ENGINE_PARTS
    from refimpl.lessons.history_timing.cases import PARTS as FENCE_PARTS

    known = ENGINE_PARTS if args.what == "engine" else tuple(FENCE_PARTS)
    only = known if args.only is None else tuple(args.only.split(","))
    unknown = [part for part in only if part not in known]
    if unknown:
        raise UserError(f"--only {args.only}: {unknown[0]!r} is no part, use some of {','.join(known)}")
    return only


def engine_models(args: argparse.Namespace) -> dict[str, EngineAmounts]:
    """Amounts by the name of the weights, for `bench engine`."""
    from refimpl.lessons.bench_engine.plan import chosen

    return chosen(device(args), _names(args.models))


def fence_models(args: argparse.Namespace) -> dict[str, FenceAmounts]:
    """Amounts by the name of the weights, for `bench fences`."""
    from refimpl.lessons.history_timing.plan import chosen

    return chosen(device(args), _names(args.models))


def device(args: argparse.Namespace) -> str:
    """Where the engine is measured; the device's module is loaded."""
    from refimpl import device as devices
    from refimpl.commands import chosen

    name: str = chosen.device(args.device) or devices.best()
    devices.get(name)
    return name


def seconds(args: argparse.Namespace) -> float:
    """Behind which no part begins."""
    given: float = SECONDS if args.seconds is None else args.seconds
    if not given > 0:
        raise UserError(f"--seconds {args.seconds:g}: give a number above 0")
    return given


def sizes(text: str) -> list[int]:
    """Launches of each program that is checked."""
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise UserError(f"--launches {text!r}: give whole numbers from 1, separated by commas")
    return found


def repeats(count: int | None, default: int) -> int:
    """Runs of each thing that is measured."""
    if count is None:
        return default
    if count < 1:
        raise UserError(f"--repeats {count}: give a whole number from 1")
    return count


def _names(text: str | None) -> list[str] | None:
    return None if text is None else text.split(",")
