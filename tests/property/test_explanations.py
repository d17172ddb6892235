"""An explanation and a verdict never contradict each other, and each link of a path is an edge of the rules."""

from itertools import pairwise

import pytest

from refimpl import program as p
from refimpl.order import Explanation, build, check, explain, races_in
from refimpl.program import Program
from tests.property.programs import assert_never, random_program, thinned

WITH_FLAGS_TOO = (
    "launch",
    "stream_write_value",
    "stream_wait_value",
    "event_record",
    "stream_wait_event",
    "graph_launch",
)


def touching(program: Program) -> list[int]:
    return [k for k, op in enumerate(program.ops) if any(p.accesses(op))]


def contradicts(program: Program) -> bool:
    if check(program).deadlock is not None:
        return False
    racing = {(race.first.op, race.second.op) for race in races_in(build(program))}
    ops = touching(program)
    for k, b in enumerate(ops):
        for a in ops[:k]:
            found = explain(program, a, b)
            if found.conflicts and found.ordered == ((a, b) in racing):
                return True
            if found.ordered and not is_path(found):
                return True
    return False


def is_path(found: Explanation) -> bool:
    """The links hang together and lead from one op to the other."""
    links = found.path
    joined = all(one.after.index == two.before.index for one, two in pairwise(links))
    return joined and links[0].before.op == found.first and links[-1].after.op == found.second


@pytest.mark.parametrize("kinds", [tuple(k for k in p.OPS if "value" not in k), WITH_FLAGS_TOO])
def test_conflicting_ops_are_explained_as_ordered_exactly_when_they_do_not_race(kinds: tuple[str, ...]) -> None:
    assert_never(contradicts, [thinned(random_program(s, kinds), s, keep=3) for s in range(50_000, 50_250)])


def test_a_graph_whose_record_node_covers_the_reader_is_before_the_writer() -> None:
    """The node that runs on is unordered with the writer, and shares no byte with it."""
    table, other = p.Range("x", 0, 8), p.Range("y", 0, 8)
    nodes = (
        p.Node(name="load", reads=(table,)),
        p.Node(name="done", record="e", deps=("load",)),
        p.Node(name="run", writes=(other,), deps=("done",)),
    )
    ops = (
        p.GraphLaunch(stream="s", nodes=nodes),
        p.StreamWaitEvent(event="e", stream="t"),
        p.Launch(stream="t", writes=(table,)),
        p.Launch(stream="t", writes=(other,)),
    )
    streams, buffers = {"s": p.Stream(), "t": p.Stream()}, {"x": p.Buffer(8), "y": p.Buffer(8)}
    program = Program(ops=ops, streams=streams, buffers=buffers)
    assert [str(link.kind) for link in explain(program, 0, 2).path] == ["graph", "event", "fifo"]
    assert not explain(program, 0, 3).ordered
