"""Reading the JSON that ``torch.profiler`` exports; every bad file gets one sentence."""

import gzip
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from refimpl.program import UserError

GPU_WORK = ("kernel", "gpu_memcpy", "gpu_memset")


@dataclass(frozen=True, slots=True)
class Event:
    """A slice of a profiler trace.

    Args:
        name, category: as in the file.
        thread: process and thread that made a call, or device and stream of GPU work.
        start, end: in the file's microseconds.
        stream: number of the stream, for GPU work.
        correlation: the number that a call shares with the work that it queued.
        args: what else the profiler says.
    """

    name: str
    category: str
    thread: tuple[str, str]
    start: float
    end: float
    stream: int | None
    correlation: int | None
    args: Mapping[str, Any]


def read_events(source: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[list[Event], Mapping[str, Any]]:
    """The slices of a chrome trace in order of time, and the parsed file.

    Raises:
        UserError: the file is missing, empty, cut off, not JSON or no chrome trace.
    """
    name = source_name(source)
    data: Any = source if isinstance(source, Mapping) else _parse(Path(source), name)
    items = data.get("traceEvents") if isinstance(data, Mapping) else data
    if not isinstance(items, list):
        raise UserError(f"{name} is JSON but no chrome trace: it has no list of traceEvents")
    events = [_event(item, number, name) for number, item in enumerate(items) if _is_slice(item)]
    return sorted(events, key=lambda event: event.start), data if isinstance(data, Mapping) else {}


def source_name(source: str | os.PathLike[str] | Mapping[str, Any]) -> str:
    """How messages call the source."""
    return "the trace" if isinstance(source, Mapping) else os.fspath(source) or "the file named ''"


def device_name(data: Mapping[str, Any]) -> str:
    """The GPUs that the profiler saw, in words, or an empty string."""
    devices = data.get("deviceProperties")
    names = (
        [str(d["name"]) for d in devices if isinstance(d, Mapping) and "name" in d] if isinstance(devices, list) else []
    )
    return ", ".join(dict.fromkeys(names))


def _parse(path: Path, name: str) -> Any:
    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except IsADirectoryError:
        raise UserError(f"{name} is a directory; name a trace file") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise UserError(f"{name} is cut off: its gzip stream does not end; export the trace again") from None
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror or error}") from None
    if not text.strip():
        raise UserError(f"{name} is empty; export a trace with profiler.export_chrome_trace")
    try:
        return json.loads(text)
    except UnicodeDecodeError:
        raise UserError(f"{name} is not text; from_profiler reads .json and .json.gz") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"{name} is cut off or not JSON ({error}); export the trace again") from None


def _is_slice(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("ph") == "X"


def _event(item: Mapping[str, Any], number: int, name: str) -> Event:
    try:
        return _slice(item)
    except KeyError as error:
        why = f"it has no {error}"
    except (TypeError, ValueError, OverflowError) as error:
        why = str(error)
    raise UserError(f"{name}: event {number} is no slice of a profiler trace: {why}") from None


def _slice(item: Mapping[str, Any]) -> Event:
    category, args = str(item.get("cat", "")), item.get("args") or {}
    if not isinstance(args, Mapping):
        raise TypeError("its args are no JSON object")
    start, us = float(item["ts"]), float(item.get("dur", 0.0))
    if not (isfinite(start) and isfinite(start + us) and us >= 0):
        raise ValueError(f"it begins at {start} and takes {us} microseconds")
    if category in GPU_WORK and "stream" not in args:
        raise ValueError("it is GPU work on no stream")
    stream = int(args["stream"]) if "stream" in args else None
    correlation = int(args["correlation"]) if "correlation" in args else None
    thread = (str(item.get("pid")), str(item.get("tid")))
    return Event(str(item["name"]), category, thread, start, start + us, stream, correlation, args)
