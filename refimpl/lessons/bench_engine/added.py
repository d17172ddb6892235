"""A run added to a saved one: what the first had no time for is measured later, and the file says which is of which."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from refimpl.lessons.bench_engine.bars import Bar, bars
from refimpl.lessons.bench_engine.origin import Origin
from refimpl.lessons.results import Result
from refimpl.program.errors import UserError

Row = Mapping[str, Any]
Group = tuple[str, str, str]
"""Part, weights and draft; the last two are empty where a part has none."""
KEPT = ("plan", "left_out", "failed", "bars", "added")
"""What of a report is no part."""


def check_same_device(saved: Result, device: str) -> None:
    """Figures of two machines in one table would look like one comparison.

    Raises:
        UserError: the saved run is of another device.
    """
    if saved.device != device:
        raise UserError(
            f"result {saved.name} was measured on {saved.device}, and this is {device}: save the run under another name"
        )


def added(
    saved: Result,
    report: Mapping[str, Any],
    origin: Origin,
    judge: Callable[[Mapping[str, Sequence[Row]]], list[Bar]] = bars,
) -> dict[str, Any]:
    """What the file holds when a run was added to it.

    A group of rows, by part, weights and draft, is replaced as a whole.

    Args:
        saved: what it holds.
        report: of the run, as `Run.report` makes it.
        origin: of the run.
        judge: what makes the bars of rows by part.

    Returns:
        The figures, with the bars of all rows together and an entry in `added` for the run.

    Raises:
        UserError: the two are of different devices.
    """
    check_same_device(saved, origin.device)
    new, old = parts_of(report), parts_of(saved.data)
    fresh = set(groups(new))
    rows = {
        part: [*(row for row in old.get(part, ()) if group_of(part, row) not in fresh), *new.get(part, ())]
        for part in dict.fromkeys([*old, *new])
    }
    entry = {**asdict(origin), "plan": report["plan"], "groups": [list(group) for group in groups(new)]}
    return {
        "plan": saved.data["plan"],
        **rows,
        "bars": [asdict(bar) for bar in judge(rows)],
        "left_out": _missing("left_out", saved.data, report, old, new),
        "failed": _missing("failed", saved.data, report, old, new),
        "added": [*_without(saved.data.get("added", ()), fresh), *([entry] if fresh else [])],
    }


def origins(saved: Result, part: str) -> dict[Origin, list[Group]]:
    """Which run each group of a part's rows is of, the first run before those that were added.

    Args:
        saved: a file.
        part: of it.
    """
    found: dict[Group, Origin] = {}
    for entry in saved.data.get("added", ()):
        origin = Origin.of(entry)
        found |= {(group[0], group[1], group[2]): origin for group in entry["groups"]}
    of: dict[Origin, list[Group]] = {Origin.of(vars(saved)): []}
    for group in groups({part: saved.data.get(part, ())}):
        of.setdefault(found.get(group, Origin.of(vars(saved))), []).append(group)
    return {origin: members for origin, members in of.items() if members}


def parts_of(data: Mapping[str, Any]) -> dict[str, Sequence[Row]]:
    """Rows by part."""
    return {name: rows for name, rows in data.items() if name not in KEPT}


def groups(parts: Mapping[str, Iterable[Row]]) -> list[Group]:
    """The groups that these rows fall into, each once, in their order."""
    return list(dict.fromkeys(group_of(part, row) for part, rows in parts.items() for row in rows))


def group_of(part: str, row: Row) -> Group:
    """What is measured at one time, and replaced at one time."""
    return part, row.get("model", ""), row.get("draft", "")


def _missing(
    field: str,
    saved: Mapping[str, Any],
    report: Mapping[str, Any],
    old: Mapping[str, Iterable[Row]],
    new: Mapping[str, Iterable[Row]],
) -> list[str]:
    """Of both runs, what the other one does not have either."""
    return [
        *(words for words in saved.get(field, ()) if _named(words) not in _names(new)),
        *(words for words in report.get(field, ()) if _named(words) not in _names(old)),
    ]


def _names(parts: Mapping[str, Iterable[Row]]) -> set[tuple[str, ...]]:
    return {(model, part) if model else (part,) for part, model, _ in groups(parts)}


def _named(words: str) -> tuple[str, ...]:
    """The weights and the part in `8b: serving` or in `8b: serving: what it said`."""
    return tuple(words.split(": ")[:2])


def _without(entries: Iterable[Row], fresh: set[Group]) -> list[Row]:
    """Earlier entries without what was measured anew."""
    left = ({**entry, "groups": [of for of in entry["groups"] if tuple(of) not in fresh]} for entry in entries)
    return [entry for entry in left if entry["groups"]]
