"""The history of the fences: presets by date and pull request, and experiments beside them, with what is expected.

The data stands in ``history.json`` beside this file. It was written before the variants were built, from the write-ups
and from upstream's texts; where an outcome differs, one of the two was wrong, and its row says which.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from refimpl.fences.chosen import KINDS, Fences

FILE = Path(__file__).with_name("history.json")


class Expect(StrEnum):
    """What is expected of a run: right; a race that spoils tokens, acceptance or the process; a race that something
    hides."""

    RIGHT = "right"
    RACY_HARMFUL = "racy-harmful"
    RACY_MASKED = "racy-masked"


class Load(StrEnum):
    """Which requests show what is at stake: some that run together; rows that change hands while a forward is in
    flight; the same with requests that are aborted; or with requests whose prefill ran elsewhere."""

    STEADY = "steady"
    HANDOVER = "handover"
    ABORTS = "aborts"
    PREBUILT = "prebuilt"


@dataclass(frozen=True)
class Preset:
    """A moment of the history, or an experiment beside it.

    Args:
        name: as ``run --preset`` takes it.
        pr: upstream's pull request; None for an experiment of ours.
        date: of the moment, ``YYYY-MM-DD``; of an experiment: that of the preset it departs from.
        experiment: whether upstream never ran so by default.
        worker: ``"plain"``, ``"eagle"``, ``"mtp"`` or ``"dflash"``.
        fences: the variants, by the names of :class:`Fences`; those left out are the most recent ones.
        engine: more of ``EngineConfig``: ``plan_stream``, ``metadata_in_graph``, ``needs_cpu_seq_lens``, ``overlap``.
        window: what sliding layers see; None without.
        load: which requests show it.
        lengths, event, barrier: who carries the lengths; which event is recorded where; where the barrier stands.
        buffers: what is at stake.
        expect: the verdict.
        why: of the verdict.
        masked_by: what hides the race; empty unless masked.
        fate: what became of it.
        inference: whether the verdict is ours alone, and no text of upstream says so.
        corrected: what building it changed in this row; empty for nothing.
    """

    name: str
    pr: int | None
    date: str
    worker: str
    load: Load
    expect: Expect
    lengths: str
    event: str
    barrier: str
    buffers: tuple[str, ...]
    why: str
    fences: dict[str, str] = field(default_factory=dict)
    engine: dict[str, bool] = field(default_factory=dict)
    experiment: bool = False
    window: int | None = None
    masked_by: str = ""
    fate: str = ""
    inference: bool = False
    corrected: str = ""

    def chosen(self) -> Fences:
        """Its fences."""
        return Fences(**{name: KINDS[name](value) for name, value in self.fences.items()})  # type: ignore[arg-type]

    @property
    def combination(self) -> tuple[str, ...]:
        """Its variants by name, in the order of the fields of :class:`Fences`."""
        return tuple(self.fences.get(field.name, str(field.default)) for field in fields(Fences))


@cache
def history() -> tuple[Preset, ...]:
    """All rows, by date.

    Raises:
        ValueError: a row that means nothing.
    """
    rows: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["presets"]
    presets = tuple(_preset(row) for row in rows)
    names = [preset.name for preset in presets]
    if len(set(names)) != len(names):
        raise ValueError(f"{FILE.name}: a name stands there twice: {sorted(names)}")
    return presets


def preset(name: str) -> Preset:
    """A row by its name.

    Raises:
        KeyError: another name; the sentence lists those there are.
    """
    for one in history():
        if one.name == name:
            return one
    raise KeyError(f"unknown preset {name!r}: use one of {', '.join(one.name for one in history())}")


@cache
def named_combinations() -> dict[tuple[str, ...], str]:
    """Each combination that the history names, with the first name it has there."""
    named: dict[tuple[str, ...], str] = {}
    for one in history():
        named.setdefault(one.combination, one.name)
    return named


def _preset(row: dict[str, Any]) -> Preset:
    unknown = set(row) - {field.name for field in fields(Preset)}
    if unknown:
        raise ValueError(f"{FILE.name}: {row.get('name')}: unknown keys {sorted(unknown)}")
    for name, value in row.get("fences", {}).items():
        if name not in KINDS or value not in list(KINDS[name]):
            raise ValueError(f"{FILE.name}: {row['name']}: {name}={value!r} is not a variant")
    made = {**row, "buffers": tuple(row["buffers"]), "load": Load(row["load"]), "expect": Expect(row["expect"])}
    found = Preset(**made)
    if (found.expect is Expect.RACY_MASKED) != bool(found.masked_by):
        raise ValueError(f"{FILE.name}: {found.name}: masked_by stands where, and only where, a race is masked")
    return found
