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
