"""The edge that a race report asks for, put into the program word by word, removes that race."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from refimpl import program as p
from refimpl.order import Race, check
from refimpl.program import Op, Program, read_programs
from tests.property.programs import random_program, thinned

HERE = Path(__file__).parents[1]
CASES = [q for q in read_programs(HERE / "cases" / "stream-programs.json") if check(q).races]
LITMUS = [q for q in read_programs(HERE / "litmus" / "programs.json") if check(q).races]
FLAGS = (p.StreamWriteValue, p.StreamWaitValue)

RECORD = r"an event (?:on (?P<on>\S+) after|recorded after) op (?P<after>\d+) \(.*?\)"
DEPEND = re.compile(r"make node \S*?/(?P<node>\S+) depend on node \S*?/(?P<dep>\S+)$")
AGENT = re.compile(r"wait for agent (?P<agent>.+?) before op (?P<before>\d+) ")
KEEP = re.compile(r"call record_stream\((?P<buf>\S+), (?P<stream>\S+)\) before (?P=buf) is freed")
HOLD = re.compile(rf"make (?P<lane>\S+) wait for {RECORD}")
SYNCHRONIZE = re.compile(rf"record {RECORD} and synchronize on it before op (?P<before>\d+) ")
WAIT = re.compile(rf"record {RECORD} and let (?P<lane>\S+) wait for it before op (?P<before>\d+) ")
STANDS = r"(?P<event>.+?) \(op (?P<record>\d+)\) before op (?P<before>\d+) "
SYNCHRONIZE_STANDING = re.compile(rf"synchronize on {STANDS}")
WAIT_STANDING = re.compile(rf"let (?P<lane>\S+) wait for {STANDS}")

Insertions = list[tuple[int, Op]]


def as_told(program: Program, race: Race) -> list[Insertions]:
    """Each way that the words offer, as ops and the places at which they go in."""
    words, first, second = race.edge.words, race.first.op, race.second.op
    if match := AGENT.match(words):
        return [[(int(match["before"]), p.HostAsyncWait(id=match["agent"]))]]
    if match := SYNCHRONIZE.match(words):
        return [[(int(match["after"]) + 1, mark(match["on"])), (int(match["before"]), p.EventSync(event="new event"))]]
    if match := WAIT.match(words):
        hold = p.StreamWaitEvent(event="new event", stream=match["lane"])
        return [[(int(match["after"]) + 1, mark(match["on"])), (int(match["before"]), hold)]]
    if match := SYNCHRONIZE_STANDING.match(words):
        return [[(int(match["before"]), p.EventSync(event=standing(program, match)))]]
    if match := WAIT_STANDING.match(words):
        hold = p.StreamWaitEvent(event=standing(program, match), stream=match["lane"])
        return [[(int(match["before"]), hold)]]
    match = HOLD.search(words)
    assert match is not None, f"no way to follow: {words}"
    lane = match["lane"]
    hold = p.EventSync(event="new event") if lane == "host" else p.StreamWaitEvent(event="new event", stream=lane)
    ways: list[Insertions] = [[(first + 1, mark(race.first.lane)), (second, hold)]]
    if keep := KEEP.search(words):
        freed = [k for k, op in enumerate(program.ops) if isinstance(op, p.TensorFree) and op.buf == keep["buf"]]
        at = [k for k in freed if k < second][-1]
        ways.append([(at, p.RecordStream(buf=keep["buf"], stream=keep["stream"]))])
    return ways


def standing(program: Program, match: re.Match[str]) -> str:
    """The event of the record that the words name."""
    record = program.ops[int(match["record"])]
    assert isinstance(record, p.EventRecord)
    assert record.event == match["event"]
    return record.event


def mark(lane: str) -> Op:
    return p.EventRecord(event="new event", stream=lane)


def still_races(program: Program, race: Race, insertions: Insertions) -> bool:
    """The pair still races after the ops went in."""
    ops = list(program.ops)
    for at, op in sorted(insertions, key=lambda item: item[0])[::-1]:
        ops.insert(at, op)
    moved = tuple(k + sum(at <= k for at, _ in insertions) for k in (race.first.op, race.second.op))
    return any((other.first.op, other.second.op) == moved for other in check(replace(program, ops=tuple(ops))).races)


def assert_edges_order(program: Program) -> None:
    for race in check(program).races:
        if match := DEPEND.match(race.edge.words):
            assert not pair_in_graph_still_races(program, race, match["node"], match["dep"]), race.edge.words
            continue
        for insertions in as_told(program, race):
            assert not still_races(program, race, insertions), f"{program.id}: {race.edge.words}"


def pair_in_graph_still_races(program: Program, race: Race, name: str, dep: str) -> bool:
    op = program.ops[race.first.op]
    assert isinstance(op, p.GraphLaunch)
    nodes = tuple(replace(n, deps=(*n.deps, dep)) if n.name == name else n for n in op.nodes)
    ops = [replace(op, nodes=nodes) if k == race.first.op else other for k, other in enumerate(program.ops)]
    names = (race.first.name, race.second.name)
    return any(
        other.first.op == other.second.op == race.first.op and (other.first.name, other.second.name) == names
        for other in check(replace(program, ops=tuple(ops))).races
    )


@pytest.mark.parametrize("program", CASES, ids=lambda program: program.id)
def test_the_missing_edge_orders_the_race_of_a_known_case(program: Program) -> None:
    assert_edges_order(program)


@pytest.mark.parametrize("program", LITMUS, ids=lambda program: program.id)
def test_the_missing_edge_orders_the_race_of_a_litmus_program(program: Program) -> None:
    if not any(isinstance(op, FLAGS) for op in program.ops):
        assert_edges_order(program)


def test_the_missing_edge_of_a_use_after_the_free_is_a_wait() -> None:
    (program,) = (program for program in LITMUS if program.id == "allocator/use_after_the_free_is_not_covered")
    assert_edges_order(program)


def test_the_missing_edge_orders_the_races_of_random_programs() -> None:
    racy = [
        q for q in (thinned(random_program(seed), seed, keep=3) for seed in range(40_000, 41_000)) if check(q).races
    ]
    assert len(racy) > 100
    for program in racy:
        if not begins_one_agent_twice(program):
            assert_edges_order(program)


def begins_one_agent_twice(program: Program) -> bool:
    """An agent that was begun again cannot be told from itself: no wait is for one of its two transfers."""
    begun = [op.id for op in program.ops if isinstance(op, p.HostAsyncBegin)]
    return len(begun) > len(set(begun))


def uses_a_tensor_after_its_free(program: Program) -> bool:
    freed: set[str] = set()
    for op in program.ops:
        if isinstance(op, p.TensorFree):
            freed.add(op.buf)
        elif isinstance(op, p.TensorAlloc):
            freed.discard(op.buf)
        elif any(r.buf in freed for side in p.accesses(op) for r in side):
            return True
    return False


def test_the_missing_edge_names_the_two_ops_of_its_race() -> None:
    for program in CASES:
        for race in check(program).races:
            assert (race.edge.after, race.edge.before) == (race.first.op, race.second.op)
