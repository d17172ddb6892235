"""What a report says beside the race: names, call sites, and the smallest edge that would order the pair."""

from dataclasses import replace
from types import CodeType

from refimpl.order.report import Hazard, MissingEdge, Race, Touch
from refimpl.order.shadow import Point, line_of
from refimpl.program import EventRecord, GraphLaunch, Node, Program

_RECORD = "record an event on"


def node_name(graph: str, node: Node) -> str:
    """A node of a graph in messages: ``graph/node``, or the name that both have."""
    return node.name if node.name == graph else f"{graph}/{node.name}"


def site_text(point: Point) -> str | None:
    """Where a call was made, as ``file:line (function)``; None when nobody said."""
    code = point.code
    if isinstance(code, CodeType):
        return f"{code.co_filename}:{line_of(code, point.offset)} ({code.co_qualname})"
    return code or None


def missing_edge(
    kind: Hazard, first: Touch, second: Touch, owners: tuple[str, str], reaches: bool = True
) -> MissingEdge:
    """The smallest edge that would order two unordered ops, and the call that makes it.

    Args:
        kind: the hazard.
        first, second: the two ops, in issue order.
        owners: the buffers that they used; they differ for a lifetime hazard.
        reaches: ``record_stream`` would cover the first use; it does not cover one on the allocating stream, nor one
            that was issued after its buffer was freed.
    """
    after, before = f"op {first.op} ({first.name})", f"op {second.op} ({second.name})"
    if first.op == second.op:
        words = f"make node {second.name} depend on node {first.name}"
    elif first.lane.startswith("agent "):
        words = f"wait for {first.lane} before {before}"
    elif kind is Hazard.LIFETIME and reaches:
        wait = f"make {second.lane} wait for an event recorded after {after}"
        words = f"call record_stream({owners[0]}, {first.lane}) before {owners[0]} is freed, or {wait}"
    elif _of_the_host(second.lane):
        words = f"{_RECORD} {first.lane} after {after} and synchronize on it before {before}"
    else:
        words = f"{_RECORD} {first.lane} after {after} and let {second.lane} wait for it before {before}"
    return MissingEdge(first.op, second.op, words)


def _of_the_host(lane: str) -> bool:
    """Whom only the host can hold back: itself, and the agents that it starts."""
    return lane == "host" or lane.startswith("agent ")


def advised(program: Program, race: Race) -> Race:
    """The race, with the shorter advice where the record that it needs stands in the program already.

    Args:
        program: what was checked.
        race: one of it.
    """
    event = _standing_record(program, race)
    if event is None or not race.edge.words.startswith(_RECORD):
        return race
    name, index = event
    lane = race.second.lane
    fence = f"synchronize on {name}" if _of_the_host(lane) else f"let {lane} wait for {name}"
    words = f"{fence} (op {index}) before op {race.second.op} ({race.second.name})"
    return replace(race, edge=replace(race.edge, words=words))


def _standing_record(program: Program, race: Race) -> tuple[str, int] | None:
    """The first event that is recorded behind the first op, and still holds that record where the second is issued."""
    held: dict[str, int] = {}
    for index in range(race.first.op + 1, race.second.op):
        op = program.ops[index]
        if isinstance(op, EventRecord):
            held.pop(op.event, None)
            if op.stream == race.first.lane:
                held[op.event] = index
        elif isinstance(op, GraphLaunch):
            for node in op.nodes:
                held.pop(node.record or "", None)
    return next(iter(held.items()), None)
