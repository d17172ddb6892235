"""Stream programs as JSON (schema 1): reading is strict, and every error names file, case, op index and field."""

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from refimpl.program.errors import ProgramError
from refimpl.program.ops import OPS, Node, Op
from refimpl.program.program import Buffer, Program, Stream, Verdict
from refimpl.program.ranges import Range

GZIP = b"\x1f\x8b"
"""How a packed file begins."""
SCHEMA = 1
_RANGE_FIELDS = frozenset(Range._fields)
LIMIT = 2**63
"""Numbers are below this, as those of CUDA are."""

Decoder = Callable[[Any], Any]
T = TypeVar("T")


def read_programs(path: str | os.PathLike[str]) -> tuple[Program, ...]:
    """The programs of a JSON file: one program, or ``{"title": …, "cases": [program, …]}``.

    Raises:
        ProgramError: the file cannot be read or is no stream program; the message names file, case, op index and field.
    """
    name = os.fspath(path)
    if not name:
        raise ProgramError("a file's name is empty; name a JSON file")
    try:
        raw = Path(path).read_bytes()
    except IsADirectoryError:
        raise ProgramError("is a directory; name a JSON file", file=name) from None
    except (OSError, ValueError) as error:
        raise ProgramError(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=name) from None
    return parse_programs(raw, name)


def parse_programs(raw: bytes, name: str) -> tuple[Program, ...]:
    """The programs of a JSON text, as in ``read_programs``.

    Args:
        raw: the text, in UTF-8.
        name: what messages call it.
    """
    try:
        return tuple(_programs(_json(raw)))
    except ProgramError as error:
        raise error.at(file=name) from None


def program_from_json(data: Any) -> Program:
    """One program from parsed JSON.

    Raises:
        ProgramError: a wrong schema, an unknown op or field, a missing field, a wrong type, an unknown stream, a range
            outside its buffer.
    """
    body = _object(data, "a program")
    case = body.get("id") if isinstance(body.get("id"), str) else None
    try:
        return _program(body)
    except ProgramError as error:
        raise error.at(case=case) from None


def program_to_json(program: Program) -> dict[str, Any]:
    """The program as JSON values, in the format's words; fields at their defaults are left out."""
    head: dict[str, Any] = {"schema": SCHEMA, "id": program.id}
    for key in ("suite", "source", "words"):
        if getattr(program, key):
            head[key] = getattr(program, key)
    head["streams"] = {name: _record(stream) for name, stream in program.streams.items()}
    head["buffers"] = {name: _record(buffer, always=("mem", "bytes")) for name, buffer in program.buffers.items()}
    head["ops"] = [{"op": op.op, **_record(op)} for op in program.ops]
    if program.expect is not None:
        head["expect"] = str(program.expect)
        head["disputed"] = program.disputed
    if program.racing_ops:
        head["racing_ops"] = [list(pair) for pair in program.racing_ops]
    return head


def _json(raw: bytes) -> Any:
    if not raw.strip():
        raise ProgramError("the file is empty; a stream program is a JSON object")
    try:
        return json.loads(raw, parse_constant=_no_constant, object_pairs_hook=_once_each)
    except ProgramError:
        raise
    except UnicodeDecodeError as error:
        packed = "; packed traces are read by `python -m refimpl trace` or `timeline`" if raw[:2] == GZIP else ""
        raise ProgramError(f"is not UTF-8 text (byte {error.start}){packed}") from None
    except json.JSONDecodeError as error:
        raise ProgramError(f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError:
        raise ProgramError("is not a stream program: a number has thousands of digits") from None
    except RecursionError:
        raise ProgramError("is nested too deeply for a stream program") from None


def _no_constant(name: str) -> Any:
    raise ProgramError(f"{name} is not a JSON number")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names differ: a reader that kept one of two values would judge another program."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ProgramError(f"the name {twice!r} stands more than once in one JSON object")
    return found


def _programs(data: Any) -> list[Program]:
    body = _object(data, "a file")
    if "traceEvents" in body:
        raise ProgramError("is a trace, not a stream program: `python -m refimpl trace` or `timeline` reads it")
    if "cases" not in body:
        return [program_from_json(body)]
    for key in body:
        if key not in ("title", "schema", "cases", "origin"):
            raise ProgramError("unknown field beside 'cases'; known are title, schema, origin", field=key)
    _check_schema(body)
    if not isinstance(body["cases"], list) or not body["cases"]:
        raise ProgramError("must be a list of at least one program", field="cases")
    programs = []
    for number, case in enumerate(body["cases"]):
        try:
            programs.append(program_from_json(case))
        except ProgramError as error:
            raise error.at(case=number) from None
    return programs


def _program(body: Mapping[str, Any]) -> Program:
    known = {f.name for f in fields(Program)} | {"schema"}
    for key in body:
        if key not in known:
            raise ProgramError(f"unknown field; a program has {', '.join(sorted(known))}", field=key)
    _check_schema(body)
    if "ops" not in body:
        raise ProgramError("is missing; a program needs its list of ops", field="ops")
    given: dict[str, Any] = {}
    for key in ("id", "suite", "source", "words"):
        if key in body:
            given[key] = _named(key, _text, body[key])
    if body.get("expect") is not None:
        given["expect"] = _named("expect", _enum(Verdict), body["expect"])
    if "disputed" in body:
        given["disputed"] = _named("disputed", _flag, body["disputed"])
    for key, kind in (("streams", Stream), ("buffers", Buffer)):
        table = _named(key, lambda value: _object(value, "names and what they are"), body.get(key, {}))
        given[key] = {name: _named(f"{key}.{name}", partial(_fill, kind), value) for name, value in table.items()}
    given["racing_ops"] = tuple(
        _named("racing_ops", _pair, pair) for pair in _named("racing_ops", _list, body.get("racing_ops", []))
    )
    ops = _named("ops", _list, body["ops"])
    return Program(ops=tuple(_op(index, value) for index, value in enumerate(ops)), **given)


def _check_schema(body: Mapping[str, Any]) -> None:
    schema = body.get("schema", SCHEMA)
    if type(schema) is not int or schema != SCHEMA:
        raise ProgramError(f"is {json.dumps(schema)[:40]}; this reader knows schema {SCHEMA}", field="schema")


def _op(index: int, data: Any) -> Op:
    try:
        body = dict(_object(data, "an op"))
        name = body.pop("op", None)
        cls = OPS.get(name) if isinstance(name, str) else None
        if cls is None:
            raise ProgramError(f"unknown op {json.dumps(name)[:60]}; known are {', '.join(OPS)}", field="op")
        return _fill(cls, body, what=f"{name!r}")
    except ProgramError as error:
        raise error.at(op=index) from None


def _fill(cls: type[T], data: Any, what: str = "") -> T:
    """A dataclass from a JSON object, each value decoded by its annotation; unknown and missing fields are errors."""
    decoders, required = _decoders(cls)  # type: ignore[arg-type]
    body = _object(data, what or cls.__name__.lower())
    values = {}
    for key, value in body.items():
        decode = decoders.get(key)
        if decode is None:
            raise ProgramError(
                f"unknown field of {what or cls.__name__.lower()}; known are {', '.join(decoders)}", field=key
            )
        try:
            values[key] = decode(value)
        except ProgramError as error:
            raise error.at(field=key) from None
    for key in required:
        if key not in values:
            raise ProgramError(f"is missing from {what or cls.__name__.lower()}", field=key)
    return cls(**values)


@cache
def _decoders(cls: Any) -> tuple[dict[str, Decoder], tuple[str, ...]]:
    hints = get_type_hints(cls)
    members: tuple[Field[Any], ...] = fields(cls)
    decoders = {f.name: _decoder(hints[f.name]) for f in members}
    if cls is Stream:
        decoders["priority"] = _priority
    return decoders, tuple(f.name for f in members if f.default is MISSING and f.default_factory is MISSING)


def _decoder(hint: Any) -> Decoder:
    """The strict decoder for one annotation of an op, a node, a stream or a buffer."""
    simple: dict[Any, Decoder] = {
        str: _text,
        int: _integer,
        float: _duration,
        Range: _range,
        Node: lambda value: _fill(Node, value, "a graph node"),
    }
    if hint in simple:
        return simple[hint]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _enum(hint)
    if get_origin(hint) is tuple:
        item = _decoder(get_args(hint)[0])
        return lambda value: tuple(map(item, _list(value)))
    optional = [arg for arg in get_args(hint) if arg is not type(None)]
    assert len(optional) == 1, f"no decoder for {hint}"
    inner = _decoder(optional[0])
    return lambda value: None if value is None else inner(value)


def _named(field: str, decode: Decoder, value: Any) -> Any:
    try:
        return decode(value)
    except ProgramError as error:
        raise error.at(field=field) from None


def _range(value: Any) -> Range:
    body = _object(value, "a range")
    for key in body:
        if key not in _RANGE_FIELDS:
            raise ProgramError(f"unknown field {key!r} of a range; known are {', '.join(Range._fields)}")
    for key in ("buf", "off", "len"):
        if key not in body:
            raise ProgramError(f"a range lacks {key!r}")
    buf, off, length = body["buf"], body["off"], body["len"]
    rows, stride = body.get("rows", 1), body.get("stride", 0)
    if not (type(buf) is str and type(off) is type(length) is type(rows) is type(stride) is int):
        raise ProgramError("a range has a buffer's name and whole numbers of bytes")
    return Range(buf, off, length, rows, stride)


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ProgramError(f"{what} must be a JSON object, not {_shown(value)}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ProgramError(f"must be a list, not {_shown(value)}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ProgramError(f"must be a string, not {_shown(value)}")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int or not 0 <= value < LIMIT:
        raise ProgramError(f"must be a whole number from 0 and below 2**63, not {_shown(value)}")
    return value


def _priority(value: Any) -> int:
    if type(value) is not int or not -LIMIT <= value < LIMIT:
        raise ProgramError(f"must be a whole number, negative for a high priority, not {_shown(value)}")
    return value


def _duration(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < LIMIT:
        raise ProgramError(f"must be a number of microseconds from 0 and below 2**63, not {_shown(value)}")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ProgramError(f"must be true or false, not {_shown(value)}")
    return value


def _pair(value: Any) -> tuple[int, int]:
    first, second = map(_integer, _list(value)) if isinstance(value, list) and len(value) == 2 else (None, None)
    if first is None or second is None:
        raise ProgramError(f"must hold pairs of op indices, not {_shown(value)}")
    return first, second


def _enum(kind: type[StrEnum]) -> Decoder:
    table = {str(member): member for member in kind}

    def decode(value: Any) -> Any:
        if not isinstance(value, str) or value not in table:
            raise ProgramError(f"must be one of {', '.join(table)}, not {_shown(value)}")
        return table[value]

    return decode


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:
        return "a value nested too deeply to be shown"
    return text if len(text) <= 60 else text[:57] + "..."


def _record(item: Any, always: tuple[str, ...] = ()) -> dict[str, Any]:
    """A dataclass as JSON values, without the fields that hold their defaults."""
    out = {}
    for f in fields(item):
        value = getattr(item, f.name)
        if f.name in always or value != f.default:
            out[f.name] = _plain(value)
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, Range):
        body: dict[str, Any] = {"buf": value.buf, "off": value.off, "len": value.len}
        return body if value.rows == 1 else {**body, "rows": value.rows, "stride": value.stride}
    if isinstance(value, Node):
        return _record(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, StrEnum) else value
