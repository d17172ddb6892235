"""The lines below a table of the page on the engine: which run its figures are of, where there are several runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass

from refimpl.lessons.bench_engine.added import Group, origins
from refimpl.lessons.bench_engine.origin import Origin
from refimpl.lessons.results import Result


@dataclass(frozen=True)
class Source:
    """One line below a table: where figures come from.

    Args:
        words: where and when; and which figures, where a table has several sources.
        command: what measured them.
    """

    words: str
    command: str


def sources(of: Result, parts: Collection[str]) -> tuple[Source, ...]:
    """A line for each run that has figures in a table; where there are several, each says which are its own.

    Args:
        of: the figures.
        parts: of a benchmark, that the table shows; none for a result that is of one run.
    """
    found: dict[Origin, list[Group]] = {}
    for part in parts:
        for origin, groups in origins(of, part).items():
            found.setdefault(origin, []).extend(groups)
    if len(found) <= 1:
        origin = next(iter(found), Origin.of(vars(of)))
        return (Source(origin.words, origin.command),)
    runs = Counter((part, model) for groups in found.values() for part, model in {group[:2] for group in groups})
    shared = {of_two for of_two, times in runs.items() if times > 1}
    return tuple(
        Source(f"{origin.words}, {_own(groups, len(parts) > 1, shared)}", origin.command)
        for origin, groups in found.items()
    )


def _own(groups: Iterable[Group], several_parts: bool, shared: Set[tuple[str, str]]) -> str:
    """Which figures these are: weights; parts where the table has several; drafts where runs share the weights."""
    names = []
    for part, model, draft in groups:
        words = (model, draft if (part, model) in shared else "", part.replace("_", " ") if several_parts else "")
        names.append(" ".join(filter(None, words)))
    return ", ".join(dict.fromkeys(names))
