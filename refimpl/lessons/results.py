"""Measured figures: one JSON file a measurement, with where, when and how it was made. Prose quotes them by key.

A quotation is `file:path|format`: `verify_done.h200:rows[variant=wait,host_ms=1].step_ms|.3f ms` is the field `step_ms`
of the one row that matches, with three decimals and its unit.
"""

import datetime
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refimpl.lessons.sources import ROOT
from refimpl.program.errors import UserError

FOLDER = ROOT / "results"
ORIGIN = ("device", "driver", "torch", "date", "command")
LONGEST_LIST = 60
"""Characters of a list of names that a line of provenance shows."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_STEP = re.compile(r"\.?(?P<name>[A-Za-z_]\w*)|\[(?P<index>\d+)\]|\[(?P<match>[^\]=]+=[^\]]*)\]")


@dataclass(frozen=True)
class Result:
    """One measurement: `data` holds the figures, the other fields say where they come from."""

    name: str
    device: str
    driver: str
    torch: str
    date: str
    command: str
    data: Mapping[str, Any]

    def get(self, path: str) -> Any:
        """The value at a path such as `rows[variant=wait].step_ms`, `medians.wait`, `rows[0].n` or `device`.

        Raises:
            UserError: the path leads nowhere, or a `[key=value]` matches no row or several.
        """
        value: Any = {**{field: getattr(self, field) for field in ORIGIN}, **self.data}
        at = 0
        while at < len(path):
            step = _STEP.match(path, at)
            if step is None:
                raise UserError(f"result {self.name}: {path!r} is no path at {path[at:]!r}: write a.b[key=value].c")
            value, at = _descend(value, step, f"result {self.name}: {path[: step.end()]!r}"), step.end()
        return value

    def quote(self, path: str, form: str = "") -> str:
        """The value at `path` as prose shows it: a format specification and, after a blank, a unit (`.3f ms`)."""
        specification, _, unit = form.partition(" ")
        value = self.get(path)
        try:
            text = format(value, specification)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"result {self.name}: {path!r} is {value!r}, which {specification!r} cannot format"
            ) from error
        return f"{text} {unit}" if unit else text


def file_of(name: str, folder: Path = FOLDER) -> Path:
    """Where the result with this name is kept.

    Raises:
        UserError: the name is no plain name of a file, such as one that leads out of the folder.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f"result {name!r}: a name has letters, digits, dots, - and _, and begins with a letter or digit"
        )
    return folder / f"{name}.json"


def check_writable(name: str, folder: Path = FOLDER) -> None:
    """Refuses what :func:`write` could not save, so that it is known before hours of measurement and not behind them.

    Raises:
        UserError: the name is no plain name of a file, or the folder or the file cannot be written.
    """
    file = file_of(name, folder)
    there = folder if folder.exists() else folder.parent
    if not os.access(there, os.W_OK) or file.is_dir():
        raise UserError(f"result {name!r}: {file} cannot be written: make it writable, or leave out --save")


def load(name: str, folder: Path = FOLDER) -> Result:
    """Read and validate `results/NAME.json`.

    Raises:
        UserError: no such file, not JSON, an origin field missing or empty, or a figure that is no finite number.
    """
    file = file_of(name, folder)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        known = ", ".join(sorted(path.stem for path in folder.glob("*.json"))) or "none"
        raise UserError(f"no result {name!r} in {folder.name}/ (there: {known})") from error
    except ValueError as error:
        raise UserError(f"{file.name} is not JSON: {error}") from error
    return _validated(name, found)


def write(
    name: str,
    data: Mapping[str, Any],
    *,
    device: str,
    driver: str,
    torch: str,
    command: str,
    date: str | None = None,
    folder: Path | str = FOLDER,
) -> Path:
    """Write `results/NAME.json`, dated today, if it passes the validation of `load`; an old file stays until then.

    Args:
        name: of the file.
        data: the figures.
        device, driver, torch, command: where they come from.
        date: of the measurement, where it was not today: YYYY-MM-DD.
        folder: of the results.

    Raises:
        UserError: the name or a figure is refused.
    """
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    found = {"device": device, "driver": driver, "torch": torch, "date": date or today, "command": command, **data}
    _validated(name, found)
    file = file_of(name, Path(folder))
    file.parent.mkdir(parents=True, exist_ok=True)
    # Two runs that save the same file at once each have a draft.
    draft = file.with_name(f"{name}.{os.getpid()}.part")
    try:
        draft.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)
    return file


def quote(quotation: str, folder: Path = FOLDER) -> str:
    """The text for a quotation `file:path|format`, as the book's `{result}` role inserts it."""
    key, _, form = quotation.partition("|")
    name, colon, path = key.partition(":")
    if not colon or not path:
        raise UserError(f"result {quotation!r}: write file:path or file:path|format")
    return load(name.strip(), folder).quote(path.strip(), form.strip())


def told(command: str) -> str:
    """A command as a line of provenance tells it: a long list of names is left out, as the file has it.

    Example:
        >>> told("python -m refimpl history --runs 20 --only 29556,35748 --models tiny")
        'python -m refimpl history --runs 20 --only 29556,35748 --models tiny'
        >>> told(f"python -m refimpl history --only {','.join(['29556'] * 20)} --models tiny")
        'python -m refimpl history --only … --models tiny'
    """
    words = (word if len(word) <= LONGEST_LIST or "," not in word else "…" for word in command.split(" "))
    return " ".join(words)


def _validated(name: str, found: Any) -> Result:
    if not isinstance(found, dict):
        raise UserError(f"result {name}: expected an object with {', '.join(ORIGIN)} and figures")
    for field in ORIGIN:
        if not isinstance(found.get(field), str) or (not found[field] and field != "driver"):
            raise UserError(f"result {name}: field {field!r} must say where the figures come from")
    try:
        datetime.date.fromisoformat(found["date"])
    except ValueError as error:
        raise UserError(f"result {name}: date {found['date']!r} must be YYYY-MM-DD") from error
    _finite(found, name)
    data = {key: value for key, value in found.items() if key not in ORIGIN}
    return Result(name=name, data=data, **{field: found[field] for field in ORIGIN})


def _finite(value: Any, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"result {where}: {value} is no measurement")
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        _finite(item, f"{where}.{key}")


def _descend(value: Any, step: re.Match[str], where: str) -> Any:
    if step["name"] is not None:
        if not isinstance(value, dict) or step["name"] not in value:
            known = ", ".join(value) if isinstance(value, dict) else type(value).__name__
            raise UserError(f"{where} does not exist (there: {known})")
        return value[step["name"]]
    if not isinstance(value, list):
        raise UserError(f"{where}: {type(value).__name__} has no rows")
    if step["index"] is not None:
        if int(step["index"]) >= len(value):
            raise UserError(f"{where}: there are {len(value)} rows")
        return value[int(step["index"])]
    wanted = dict(pair.split("=", 1) for pair in step["match"].split(","))
    rows = [row for row in value if all(_same(row.get(key), text) for key, text in wanted.items())]
    if len(rows) != 1:
        raise UserError(f"{where} matches {len(rows)} rows, not one")
    return rows[0]


def _same(value: Any, text: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value) == text
    try:
        return float(text) == float(value)
    except ValueError:
        return False
