"""Reading JSON of any size an event at a time: what is not needed never becomes an object that stays."""

import gzip
import json
import os
import re
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from refimpl.program import UserError

LIMIT_BYTES = 1 << 30
"""Of JSON, unpacked: beyond it a trace would not fit beside its spans."""
_EVENTS = "traceEvents"
_BLANK = re.compile(r"[ \t\r\n]*")
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 24
Item = tuple[str | None, Any]
"""A top-level field with its name, or an event, whose name is None."""


def file_items(path: Path, name: str) -> Iterator[Item]:
    """The top-level fields of a chrome trace, and its events one by one, in the order of the file.

    Args:
        path: a ``.json`` or ``.json.gz`` file.
        name: what messages call it.

    Raises:
        UserError: the file is missing, empty, cut off, too large, not JSON or no chrome trace.
    """
    text = _text(path, name)
    try:
        yield from _items(text, name)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError, too
        raise UserError(f"{name} is cut off or not JSON ({error}); export the trace again") from None


def _text(path: Path, name: str) -> str:
    raw = _bytes(path, name)
    if not raw.strip():
        raise UserError(f"{name} is empty; export a trace with profiler.export_chrome_trace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{name} is not text; from_profiler reads .json and .json.gz") from None


def _bytes(path: Path, name: str) -> bytes:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
            size = os.fstat(file.fileno()).st_size
            file.seek(0)
            if size > LIMIT_BYTES:
                raise _too_large(name)
            return unpacked(file.read(), name) if packed else file.read()
    except IsADirectoryError:
        raise UserError(f"{name} is a directory; name a trace file") from None
    except EOFError:
        raise UserError(f"{name} is cut off: its gzip stream does not end; export the trace again") from None
    except (gzip.BadGzipFile, zlib.error):
        raise UserError(f"{name} is damaged: its gzip stream cannot be unpacked; export the trace again") from None
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror or error}") from None


def unpacked(packed: bytes, name: str) -> bytes:
    """Every member of a gzip file, as long as all of them stay under the limit.

    Raises:
        EOFError: it is cut off.
        zlib.error: it is damaged.
        UserError: it is too large.
    """
    out, size = [], 0
    while packed:
        stream, rest = zlib.decompressobj(wbits=31), packed
        while not stream.eof:
            piece = stream.decompress(rest, _CHUNK)
            rest = stream.unconsumed_tail
            if not piece and not rest and not stream.eof:
                raise EOFError
            out.append(piece)
            size += len(piece)
            if size > LIMIT_BYTES:
                raise _too_large(name)
        packed = stream.unused_data.lstrip(b"\0")
    return b"".join(out)


def _too_large(name: str) -> UserError:
    return UserError(f"{name} holds more than {LIMIT_BYTES >> 30} GiB of JSON; profile fewer steps")


def _items(text: str, name: str) -> Generator[Item, None, None]:
    scan = json.JSONDecoder(strict=False).raw_decode  # names of the profiler may hold line ends as they are
    at = _skip(text, 0)
    if text.startswith("[", at):
        at = yield from _list(text, at, scan, may_stay_open=True)
        _nothing_after(text, at)
        return
    if not text.startswith("{", at):
        _nothing_after(text, scan(text, at)[1])
        raise no_trace(name)
    found, at = False, _skip(text, at + 1)
    while not text.startswith("}", at):
        key, at = scan(text, at)
        at = _skip(text, _expect(text, _skip(text, at), ":"))
        if key == _EVENTS and text.startswith("[", at):
            found = True
            at = yield from _list(text, at, scan, may_stay_open=False)
        else:
            value, at = scan(text, at)
            yield str(key), value
        at = _skip(text, at)
        if not text.startswith("}", at):
            at = _skip(text, _expect(text, at, ","))
    _nothing_after(text, at + 1)
    if not found:
        raise no_trace(name)


def no_trace(name: str) -> UserError:
    """What is said of JSON without events."""
    return UserError(f"{name} is JSON but no chrome trace: it has no list of traceEvents")


def _list(text: str, at: int, scan: Any, may_stay_open: bool) -> Generator[Item, None, int]:
    """The values of a list; the end of the text ends one that may stay open, as chrome's array form may."""
    at, slices = _skip(text, at + 1), 0
    while not text.startswith("]", at):
        if may_stay_open and slices and at == len(text):
            return at
        value, at = scan(text, at)
        slices += isinstance(value, dict) and "ph" in value
        yield None, value
        at = _skip(text, at)
        if text.startswith(",", at):
            at = _skip(text, at + 1)
        elif not (text.startswith("]", at) or (may_stay_open and slices and at == len(text))):
            raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
    return at + 1


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found is not None else at


def _expect(text: str, at: int, mark: str) -> int:
    if not text.startswith(mark, at):
        raise json.JSONDecodeError(f"Expecting {mark!r}", text, at)
    return at + 1


def _nothing_after(text: str, at: int) -> None:
    if _skip(text, at) != len(text):
        raise json.JSONDecodeError("Extra data", text, at)
