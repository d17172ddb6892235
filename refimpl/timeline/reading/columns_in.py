"""``from_columns``: a Trace back from the columns that a page or a file keeps; every bad file gets one sentence."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from refimpl.order import EdgeKind
from refimpl.program import Span, Trace, TraceSource, UserError
from refimpl.program.ops import LONGEST_US
from refimpl.timeline.ordering import SpanEdge
from refimpl.timeline.writing.columns import KINDS, SCHEMA

_TIMES = ("start", "end", "submit", "ready")
_PLACES = ("lane", "name", "kind", "call", "op")
T = TypeVar("T")


def from_columns(data: Any, name: str = "the columns") -> tuple[Trace, tuple[SpanEdge, ...]]:
    """The trace that ``columns`` made the values from, sorted by start, and the ordering edges between its spans.

    Args:
        data: parsed JSON.
        name: what messages call it.

    Raises:
        UserError: it is no such table.

    Example:
        >>> from refimpl.program import SpanKind
        >>> from refimpl.timeline import columns
        >>> trace = Trace(("host",), (Span("host", "build", SpanKind.HOST, 0, 5),), TraceSource.SCHEDULED)
        >>> from_columns(columns(trace)) == (trace, ())
        True
    """
    try:
        return _trace(data), _edges(data["edges"], len(data["spans"]["lane"]))
    except KeyError as error:
        why = f"it has no {error}"
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        why = str(error)
    raise UserError(f"{name} is no recorded run of schema {SCHEMA}: {why}")


def _trace(data: Mapping[str, Any]) -> Trace:
    if data["schema"] != SCHEMA:
        raise ValueError(f"its schema is {data['schema']!r}")
    lanes, names, calls = (_texts(data[key], key) for key in ("lanes", "names", "calls"))
    if len(set(lanes)) < len(lanes):
        raise ValueError(f"two of its lanes have one name: {', '.join(lanes)}")
    _check_steps(data.get("steps", []))
    spans = data["spans"]
    count = len(spans["lane"])
    for key in (*_TIMES, *_PLACES):
        if not isinstance(spans[key], list) or len(spans[key]) != count:
            raise ValueError(f"the column {key!r} does not have {count} entries")
    numbers = {key: [_number(value, key) for value in spans[key]] for key in _TIMES}
    places = {key: [_place(value, key) for value in spans[key]] for key in _PLACES}
    made = []
    for k in range(count):
        start, end = numbers["start"][k], numbers["end"][k]
        if start is None or end is None or end < start:
            raise ValueError(f"span {k} begins at {start} and ends at {end}")
        submit, ready = numbers["submit"][k], numbers["ready"][k]
        if submit is not None and ready is not None and ready < submit:
            raise ValueError(f"the call of span {k} begins at {submit} and ends at {ready}")
        lane, kind = _of(lanes, places["lane"][k], "lane"), _of(KINDS, places["kind"][k], "kind")
        label, op = _of(names, places["name"][k], "name"), places["op"][k]
        call = None if places["call"][k] == -1 else _of(calls, places["call"][k], "call")
        made.append(Span(lane, label, kind, start, end, None if op == -1 else op, submit, ready, call))
    return Trace(tuple(lanes), tuple(made), TraceSource(data["source"]), str(data["device"]))


def _edges(data: Mapping[str, Any], spans: int) -> tuple[SpanEdge, ...]:
    kinds = [EdgeKind(kind) for kind in data["kinds"]]
    ends = list(zip(data["from"], data["to"], data["kind"], strict=True))
    for source, target, _ in ends:
        if not (0 <= _place(source, "from") < spans and 0 <= _place(target, "to") < spans):
            raise ValueError(f"the edge from {source} to {target} joins spans that it does not have")
    return tuple(SpanEdge(source, target, _of(kinds, kind, "kind")) for source, target, kind in ends)


def _texts(values: Any, key: str) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{key!r} is no list of texts")
    return values


def _check_steps(steps: Any) -> None:
    """They are not of the trace, and what draws it takes them as they are."""
    if not isinstance(steps, list):
        raise TypeError(f"'steps' is {steps!r}, and no list of times")
    if None in [_number(value, "steps") for value in steps]:
        raise TypeError("'steps' holds None, which is no time")


def _number(value: Any, key: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_US:
        raise TypeError(f"the column {key!r} holds {value!r}, which is no time of a run that begins at 0")
    return value


def _place(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{key!r} holds {value!r}, which is no whole number")
    return value


def _of(table: Sequence[T], place: int, key: str) -> T:
    if not 0 <= place < len(table):
        raise ValueError(f"there is no {key} number {place}")
    return table[place]
