"""What a saved run may not take the place of: figures of another command, of other parts, weights or machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from refimpl.program.errors import UserError

if TYPE_CHECKING:
    from refimpl.lessons.provenance import Machine
    from refimpl.lessons.results import Result

MOST_NAMED = 3


def refuse_loss(name: str, lost: Sequence[str], remedy: str) -> None:
    """Sees to it that a shorter run does not take the place of a longer one.

    Args:
        name: of the result.
        lost: what it has and the run would not make.
        remedy: the option that keeps it.

    Raises:
        UserError: something would be lost.
    """
    if lost:
        words = ", ".join(lost[:MOST_NAMED]) + ", …" * (len(lost) > MOST_NAMED)
        raise UserError(
            f"--save {name}: it has rows that this run would lose ({words}): add {remedy}, or save under another name"
        )


def refuse_other(name: str, command: str, options: bool = True) -> None:
    """Sees to it that a result is made anew by what made it, and by nothing else.

    Args:
        name: of the result; it may be new.
        command: of this run, as the result will tell it.
        options: whether they count; without, it is enough that the saved command begins with this one.

    Raises:
        UserError: the name cannot be written, or what is there was made by another command.
    """
    from refimpl.lessons import results

    results.check_writable(name)
    if not results.file_of(name).is_file():
        return
    saved = results.load(name).command
    if saved != command and (options or not f"{saved} ".startswith(f"{command} ")):
        raise UserError(
            f"result {name!r} was made by `{saved}`, and this run would take its place: save under another name, or "
            "remove the file first"
        )


def lost_groups(found: Result, parts: Collection[str], models: Collection[str]) -> list[str]:
    """Groups of a benchmark's rows that a run would not measure: ``"8b: chain"``.

    Args:
        found: what is saved.
        parts: that the run measures; what is derived from a part has a name that begins with it.
        models: weights that the run measures with.
    """
    from refimpl.lessons.bench_engine.added import groups, parts_of

    rows = {part: found for part, found in parts_of(found.data).items() if isinstance(found, list)}
    missing = (
        f"{model}: {part}" if model else part
        for part, model, _ in groups(rows)
        if not any(part.startswith(one) for one in parts) or (model and model not in models)
    )
    return list(dict.fromkeys(missing))


def is_measured(report: Mapping[str, Any]) -> bool:
    """Whether a benchmark's report has any row."""
    from refimpl.lessons.bench_engine.added import parts_of

    return any(parts_of(report).values())


def refuse_other_machine(found: Result, machine: Machine) -> None:
    """Rows of two machines in one file would look like one campaign.

    Raises:
        UserError: device, driver or torch are not those of the saved rows.
    """
    there, here = (_words(one.device, one.driver, one.torch) for one in (found, machine))
    if there != here:
        raise UserError(
            f"--resume: {found.name} was made on {there}, and this is {here}: save the run under another name"
        )


def _words(device: str, driver: str, torch: str) -> str:
    return f"{device} ({f'driver {driver}, ' if driver else ''}torch {torch})"
