"""Reading the JSON that ``torch.profiler`` exports; every bad file gets one sentence."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

from refimpl.program import UserError
from refimpl.timeline.reading.chrome_text import Item, file_items, no_trace

GPU_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver", "hip_runtime")
NOTE, OPERATOR, SYNC = "user_annotation", "cpu_op", "cuda_sync"
_NEEDED = frozenset((*GPU_WORK, *CALLS, NOTE, OPERATOR, SYNC))
_UNUSED = frozenset(
    (
        "python_function",
        "gpu_user_annotation",
        "overhead",
        "Trace",
        "ac2g",
        "fwdbwd",
        "cuda_profiler_range",
        "async_cpu_to_gpu",
    )
)
"""Of the profiler, and not looked at: a trace that has them is the profiler's."""
Thread = tuple[str, str]
"""Process and thread, as the file calls them."""


@dataclass(frozen=True, slots=True)
class Event:
    """A slice of a profiler trace.

    Args:
        name, category: as in the file.
        thread: process and thread that made a call, or device and stream of GPU work.
        start, end: in the file's microseconds.
        stream, device: numbers of the stream and of its GPU, for GPU work.
        correlation: the number that a call shares with the work that it queued.
        waited: number of the CUDA event, for a wait on one.
        args: what else the file says, where nothing is the profiler's.
    """

    name: str
    category: str
    thread: Thread
    start: float
    end: float
    stream: int | None = None
    correlation: int | None = None
    device: int | None = None
    waited: int | None = None
    args: Mapping[str, Any] | None = None


@dataclass
class Profile:
    """What a chrome trace holds that a timeline needs.

    Args:
        events: the profiler's slices, in order of their starts.
        others: slices of a trace in which nothing is the profiler's, in order of their starts.
        arrows: of such a trace: beginnings and ends of its flow events, as in the file.
        threads, processes: their names by what the file calls them, where it says.
        fields: what else stands beside the events.
    """

    events: list[Event] = field(default_factory=list)
    others: list[Event] = field(default_factory=list)
    arrows: list[Mapping[str, Any]] = field(default_factory=list)
    threads: dict[Thread, str] = field(default_factory=dict)
    processes: dict[str, str] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """The GPUs that the profiler saw, in words, or an empty string."""
        devices = self.fields.get("deviceProperties")
        found = devices if isinstance(devices, list) else []
        return ", ".join(dict.fromkeys(str(d["name"]) for d in found if isinstance(d, Mapping) and "name" in d))


def read_profile(source: str | os.PathLike[str] | Mapping[str, Any]) -> Profile:
    """The slices of a chrome trace, from a file or from parsed JSON.

    Raises:
        UserError: the file is missing, empty, cut off, too large, not JSON or no chrome trace.
    """
    name = source_name(source)
    items = _parsed(source, name) if isinstance(source, Mapping) else file_items(Path(source), name)
    return _Reader(name).read(items)


def source_name(source: str | os.PathLike[str] | Mapping[str, Any]) -> str:
    """How messages call the source."""
    return "the trace" if isinstance(source, Mapping) else os.fspath(source) or "the file named ''"


def _parsed(data: Mapping[str, Any], name: str) -> Iterable[Item]:
    events = data.get("traceEvents")
    if not isinstance(events, list):
        raise no_trace(name)
    yield from ((key, value) for key, value in data.items() if key != "traceEvents")
    yield from ((None, event) for event in events)


class _Reader:
    """Sorts the items of one file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._profile = Profile()
        self._ours = False
        self._open: dict[Thread, list[tuple[int, Mapping[str, Any]]]] = {}
        self._texts: dict[str, str] = {}
        self._places: dict[Thread, Thread] = {}

    def read(self, items: Iterable[Item]) -> Profile:
        number = 0
        for key, value in items:
            if key is not None:
                self._profile.fields[key] = value
                continue
            if isinstance(value, Mapping):
                self._take(value, number)
            number += 1
        self._profile.events.sort(key=lambda event: event.start)
        self._profile.others.sort(key=lambda event: (event.start, -event.end))
        return self._profile

    def _take(self, item: Mapping[str, Any], number: int) -> None:
        match item.get("ph"):
            case "X":
                self._slice(item, number)
            case "B":
                self._open.setdefault(_place(item), []).append((number, item))
            case "E":
                self._end(item)
            case "M":
                self._metadata(item)
            case "s" | "f" if not self._ours:
                self._profile.arrows.append(item)

    def _end(self, item: Mapping[str, Any]) -> None:
        """A slice in two parts; an end without a beginning says nothing."""
        begun = self._open.get(_place(item))
        if begun:
            number, first = begun.pop()
            try:
                us = float(item["ts"]) - float(first["ts"])
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise self._wrong(number, error) from None
            args = {**_args(first), **_args(item)}
            self._slice({"name": item.get("name", ""), **first, "dur": us, "args": args}, number)

    def _slice(self, item: Mapping[str, Any], number: int) -> None:
        category = str(item.get("cat", ""))
        if category in _NEEDED:
            if not self._ours:
                self._only_ours()
            self._profile.events.append(self._event(item, number))
        elif category in _UNUSED:
            self._only_ours()
        elif not self._ours:
            self._profile.others.append(replace(self._event(item, number), args=_args(item)))

    def _only_ours(self) -> None:
        self._ours = True
        self._profile.others.clear()
        self._profile.arrows.clear()

    def _metadata(self, item: Mapping[str, Any]) -> None:
        name = _args(item).get("name")
        if isinstance(name, str) and name:
            if item.get("name") == "thread_name":
                self._profile.threads[_place(item)] = name
            elif item.get("name") == "process_name":
                self._profile.processes[_place(item)[0]] = name

    def _event(self, item: Mapping[str, Any], number: int) -> Event:
        try:
            return _event(item, self._texts, self._places)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise self._wrong(number, error) from None

    def _wrong(self, number: int, error: Exception) -> UserError:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        return UserError(f"{self._name}: event {number} is no slice of a profiler trace: {why}")


def _event(item: Mapping[str, Any], texts: dict[str, str], places: dict[Thread, Thread]) -> Event:
    """The slice, which shares its name and its place with the others that have them."""
    category, args = str(item.get("cat", "")), item.get("args") or {}
    if not isinstance(args, Mapping):
        raise TypeError("its args are no JSON object")
    start, us = float(item["ts"]), float(item.get("dur", 0.0))
    if not (isfinite(start) and isfinite(start + us) and us >= 0):
        raise ValueError(f"it begins at {start} and takes {us} microseconds")
    if category in GPU_WORK and "stream" not in args:
        raise ValueError("it is GPU work on no stream")
    name, place = str(item["name"]), _place(item)
    return Event(
        texts.setdefault(name, name),
        texts.setdefault(category, category),
        places.setdefault(place, place),
        start,
        start + us,
        int(args["stream"]) if "stream" in args else None,
        int(args["correlation"]) if "correlation" in args else None,
        _told(args, "device"),
        _told(args, "wait_on_cuda_event_id"),
    )


def _told(args: Mapping[str, Any], key: str) -> int | None:
    value = args.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _place(item: Mapping[str, Any]) -> Thread:
    return str(item.get("pid")), str(item.get("tid"))


def _args(item: Mapping[str, Any]) -> Mapping[str, Any]:
    args = item.get("args")
    return args if isinstance(args, Mapping) else {}
