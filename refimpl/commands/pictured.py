"""What can be pictured, found in a file by its content: programs, explorables, recorded runs, profiler traces."""

import json
import re
import stat
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from refimpl.commands.check import STDIN, named
from refimpl.program import (
    Program,
    ProgramError,
    Trace,
    UserError,
    program_from_json,
)
from refimpl.program.codec import parse_programs
from refimpl.timeline.ordering import SpanEdge

_HEAD = 1 << 20
"""Bytes of a file in which its kind shows."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?|[{}\[\]]')
_KINDS = {"ops": "program", "cases": "programs", "variants": "explorable", "traceEvents": "profile", "spans": "run"}
"""What a file is, by a name that stands at its top."""
_TAKEN = "a stream program, an explorable, a recorded run or a profiler trace"


@dataclass(frozen=True)
class Pictured:
    """One thing to draw.

    Args:
        kind: ``"program"``, ``"explorable"``, ``"run"`` or ``"profile"``.
        id: what it is called.
        program: what ran, where that is known; of an explorable, the variant that is shown first.
        trace: when it ran, for a run and a profile; a program is scheduled when it is drawn.
        edges: ordering edges of a run, between its spans.
        spec: the JSON of an explorable, or the columns of a run.
    """

    kind: str
    id: str
    program: Program | None = None
    trace: Trace | None = None
    edges: tuple[SpanEdge, ...] = ()
    spec: Mapping[str, Any] | None = None


def read(file: str, case: str | None, merge_launches: bool = False) -> Pictured:
    """What the file holds.

    Args:
        file: its path, or ``-`` for standard input.
        case: the id of one program of several, or of an explorable's variant.
        merge_launches: of a profile, one span for all kernels of a launch.

    Raises:
        UserError: it cannot be read, or is nothing that can be drawn, or there is no such case.
    """
    name = named(file)
    once = read_once(file)
    raw = _bytes(file, -1 if once else _HEAD)
    kind = _kind(raw, name)
    if case is not None and kind in ("run", "profile"):
        raise UserError(f"{name} is one recorded run: it has no cases, so leave out --case")
    if kind == "profile":
        return _profile(file, raw if once else None, merge_launches)
    text = _text(raw if once else _bytes(file), name)
    if kind in ("program", "programs"):
        return _program(parse_programs(text, name), name, case)
    return (_explorable if kind == "explorable" else _run)(_json(text, name), name, case)


def read_once(file: str) -> bool:
    """Whether a file is gone when it is read, as standard input and pipes are."""
    try:
        mode = Path(file).stat().st_mode
    except (OSError, ValueError):
        return file == STDIN
    return file == STDIN or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _bytes(file: str, most: int = -1) -> bytes:
    """What a file holds, or so many bytes of it."""
    if file == STDIN:
        if sys.stdin is None:
            raise UserError("standard input is closed: name a file, or send one in")
        return sys.stdin.buffer.read()
    if not file:
        raise UserError("a file's name is empty; name a JSON file")
    try:
        with Path(file).open("rb") as opened:
            return opened.read(most)
    except IsADirectoryError:
        raise UserError(f"{file} is a directory; name a JSON file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _kind(raw: bytes, name: str) -> str:
    """By the first telling name at the top; a list is a trace of the profiler's kind."""
    head = _head(raw, name).decode("utf-8", "replace")
    if not head.strip():
        raise UserError(f"{name} is empty; name {_TAKEN}, as JSON")
    if head.lstrip().startswith("["):
        return "profile"
    depth = 0
    for match in _TOKEN.finditer(head):
        token = match[0]
        depth += (token in "{[") - (token in "}]")
        if match[1] and depth == 1 and (kind := _KINDS.get(token.rstrip(": \t\r\n").strip('"'))):
            return kind
    if not head.lstrip().startswith("{"):
        raise UserError(f"{name} is not JSON; name {_TAKEN}")
    telling = ", ".join(_KINDS)
    raise UserError(f"{name} is JSON but nothing that can be drawn: it has none of {telling}; name {_TAKEN}")


def _head(raw: bytes, name: str) -> bytes:
    if raw[:2] != b"\x1f\x8b":
        return raw[:_HEAD]
    try:
        return zlib.decompressobj(wbits=31).decompress(raw, _HEAD)
    except zlib.error as error:
        raise UserError(f"{name} is damaged: its gzip stream cannot be read ({error})") from None


def _text(raw: bytes, name: str) -> bytes:
    if raw[:2] != b"\x1f\x8b":
        return raw
    from refimpl.timeline.reading.chrome_text import unpacked

    try:
        return unpacked(raw, name)
    except EOFError:
        raise UserError(f"{name} is cut off: its gzip stream does not end") from None
    except zlib.error as error:
        raise UserError(f"{name} is damaged: its gzip stream cannot be read ({error})") from None


def _json(text: bytes, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name} is cut off or not JSON: {error}") from None


def _profile(file: str, raw: bytes | None, merge_launches: bool) -> Pictured:
    """A profiler's trace, from its bytes or, where they can be read again, an event at a time from its file."""
    from refimpl.timeline import from_profiler

    name = named(file)
    if raw is None:
        stem = Path(file).name.removesuffix(".gz").removesuffix(".json").removesuffix(".pt.trace")
        return Pictured("profile", stem, trace=from_profiler(file, merge_launches=merge_launches))
    data = _json(_text(raw, name), name)
    source = {"traceEvents": data} if isinstance(data, list) else data
    return Pictured("profile", "trace", trace=from_profiler(source, merge_launches=merge_launches))


def _program(programs: tuple[Program, ...], name: str, case: str | None) -> Pictured:
    ids = [program.id for program in programs]
    if case is None and len(programs) > 1:
        raise UserError(f"{name} has {len(programs)} programs: name one with --case; there are {_some(ids)}")
    chosen = [program for program in programs if case in (None, program.id)]
    if not chosen:
        raise UserError(f"{name}: no case {case!r}; there are {_some(ids)}")
    return Pictured("program", chosen[0].id, program=chosen[0])


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def _explorable(spec: Any, name: str, case: str | None) -> Pictured:
    from refimpl.view.spec import first_program

    if case is not None:
        spec = {**spec, "initial": case}
    try:
        program = first_program(spec)
        for variant in spec["variants"]:
            program_from_json(variant["program"])
    except ProgramError as error:
        raise error.at(file=name) from None
    return Pictured("explorable", str(spec.get("id", "explorable")), program=program, spec=spec)


def _run(data: Any, name: str, case: str | None) -> Pictured:
    from refimpl.timeline.reading.columns_in import from_columns

    trace, edges = from_columns(data, name)
    return Pictured("run", str(data.get("id", "run")), trace=trace, edges=edges, spec=data)
