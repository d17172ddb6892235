"""What must hold for every program, whatever it says."""

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from refimpl import program as p
from refimpl.order import Checker, build, check, history, races_in, run, shadow
from refimpl.program import Op, Program, Range, program_from_json, program_to_json
from tests.property.programs import KINDS, assert_never, random_program, thinned, with_ranges

Pairs = set[tuple[int, int]]


def programs(start: int, count: int, kinds: tuple[str, ...] = KINDS) -> list[Program]:
    """Half with many accesses, half with three ops left that touch common bytes."""
    many = [random_program(seed, kinds) for seed in range(start, start + count // 2)]
    few = [thinned(random_program(seed, kinds), seed, keep=3) for seed in range(start + count // 2, start + count)]
    return many + few


def all_pairs(program: Program, as_observed: bool = False) -> Pairs:
    """Every racing pair of ops."""
    return {(race.first.op, race.second.op) for race in races_in(build(program, as_observed))}


def races(program: Program, as_observed: bool = False) -> bool:
    return bool(run(program, as_observed).races())


def seed_of(program: Program) -> int:
    return int(program.id.split()[-1])


# ── fences and accesses ──

FENCES: list[Callable[[Random], Op]] = [
    lambda rng: p.DeviceSync(),
    lambda rng: p.StreamSync(stream=rng.choice(("s", "b", "legacy"))),
    lambda rng: p.StreamWaitStream(stream=rng.choice(("s", "t", "legacy")), on=rng.choice(("s", "b", "legacy"))),
    lambda rng: p.StreamWaitEvent(stream=rng.choice(("s", "t", "b")), event=rng.choice(("e", "f"))),
    lambda rng: p.EventSync(event=rng.choice(("e", "f"))),
]


def test_adding_a_fence_never_adds_a_race() -> None:
    def adds(program: Program) -> bool:
        rng = Random(seed_of(program))
        at = rng.randint(0, len(program.ops))
        fenced = replace(program, ops=(*program.ops[:at], rng.choice(FENCES)(rng), *program.ops[at:]))
        moved = {(a + (a >= at), b + (b >= at)) for a, b in all_pairs(program)}
        return not all_pairs(fenced) <= moved or (races(fenced) and not races(program))

    assert_never(adds, programs(20_000, 600))


def test_removing_the_accesses_of_an_op_never_adds_a_race() -> None:
    def adds(program: Program) -> bool:
        at = Random(seed_of(program)).randrange(len(program.ops)) if program.ops else 0
        ops = [
            with_ranges(op, lambda r: r._replace(off=r.off + 2048)) if k == at else op
            for k, op in enumerate(program.ops)
        ]
        less = replace(program, ops=tuple(ops))
        return not all_pairs(less) <= all_pairs(program) or (races(less) and not races(program))

    assert_never(adds, programs(21_000, 600))


def test_judging_as_observed_never_adds_a_race() -> None:
    def adds(program: Program) -> bool:
        observed = all_pairs(program, as_observed=True)
        return not observed <= all_pairs(program) or (races(program, as_observed=True) and not races(program))

    kinds = ("alloc", "memcpy", "memset", "host_read", "host_write", "set_device", "stream_sync", "event_record")
    assert_never(adds, programs(22_000, 500) + programs(23_000, 400, kinds))


# ── names ──


def renamed(program: Program) -> Program:
    """Other names for streams, buffers and events, declared in another order."""
    rng = Random(seed_of(program))
    names = [*program.streams, *program.buffers, "e", "f", "block0", "block1", "send", "receive"]
    fresh = dict(zip(names, rng.sample([f"name{k}" for k in range(len(names))], len(names)), strict=True))
    fresh["legacy"] = "legacy"
    data = program_to_json(program)
    for key in ("streams", "buffers"):
        table = list(data[key].items())
        rng.shuffle(table)
        data[key] = {fresh[name]: what for name, what in table}
    data["ops"] = [_renamed(op, fresh) for op in data["ops"]]
    return program_from_json(data)


def _renamed(value: object, fresh: dict[str, str], key: str = "") -> object:
    if isinstance(value, dict):
        return {k: _renamed(v, fresh, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_renamed(item, fresh, key) for item in value]
    return fresh[value] if key in ("stream", "on", "event", "buf", "block", "id", "record", "wait") else value  # type: ignore[index]


def test_other_names_change_nothing() -> None:
    def changes(program: Program) -> bool:
        other = renamed(program)
        return all_pairs(other) != all_pairs(program) or races(other) != races(program)

    assert_never(changes, programs(24_000, 500))


def test_sites_steps_and_durations_change_no_verdict() -> None:
    def changes(program: Program) -> bool:
        ops = tuple(replace(op, us=3.0, site=f"a.py:{k % 3}", step=k) for k, op in enumerate(program.ops))
        return races(replace(program, ops=ops)) != races(program)

    assert_never(changes, programs(25_000, 300))


def test_a_program_and_its_json_have_one_report() -> None:
    def changes(program: Program) -> bool:
        return check(program_from_json(json.loads(json.dumps(program_to_json(program))))) != check(program)

    assert_never(changes, programs(26_000, 300))


# ── bytes ──


def halves(r: Range) -> list[Range]:
    """Two ranges that are together the same bytes: two parts of each run, or the first rows and the others."""
    if r.rows > 1 and r.off % 2:
        return [r._replace(rows=1, stride=0), r._replace(off=r.off + r.stride, rows=r.rows - 1)]
    half = r.len // 2
    return [r._replace(len=half), r._replace(off=r.off + half, len=r.len - half)]


def split(op: Op) -> Op:
    match op:
        case p.Launch():
            return replace(op, **_split(op))
        case p.GraphLaunch():
            return replace(op, nodes=tuple(replace(node, **_split(node)) for node in op.nodes))
    return op


def _split(item: p.Launch | p.Node) -> dict[str, tuple[Range, ...]]:
    return {key: tuple(half for r in getattr(item, key) for half in halves(r)) for key in ("reads", "writes")}


def test_splitting_ranges_in_two_changes_no_verdict() -> None:
    def changes(program: Program) -> bool:
        other = replace(program, ops=tuple(map(split, program.ops)))
        return all_pairs(other) != all_pairs(program) or races(other) != races(program)

    assert_never(
        changes, programs(27_000, 500, ("launch", "graph_launch", "event_record", "stream_wait_event", "tensor_alloc"))
    )


def test_shifting_all_offsets_changes_nothing() -> None:
    def changes(program: Program) -> bool:
        other = replace(
            program, ops=tuple(with_ranges(op, lambda r: r._replace(off=r.off + 1999)) for op in program.ops)
        )
        return all_pairs(other) != all_pairs(program) or races(other) != races(program)

    assert_never(changes, programs(28_000, 300))


# ── order of issue ──

INDEPENDENT = ("launch", "event_record", "stream_wait_event", "stream_wait_stream", "graph_launch", "memset")


def test_two_programs_that_share_nothing_may_be_issued_in_any_mixture() -> None:
    def changes(one: Program) -> bool:
        seed = seed_of(one)
        other = renamed(random_program(seed + 1, INDEPENDENT, streams=("s", "t", "s1")))
        rng, tagged = Random(seed), [(0, k) for k in range(len(one.ops))]
        for k in range(len(other.ops)):
            tagged.insert(rng.randint(tagged.index((1, k - 1)) + 1 if k else 0, len(tagged)), (1, k))
        mixed = Program(
            ops=tuple((one, other)[which].ops[k] for which, k in tagged),
            streams={**one.streams, **other.streams},
            buffers={**one.buffers, **other.buffers},
        )
        expected = {
            (tagged.index((which, a)), tagged.index((which, b)))
            for which, program in enumerate((one, other))
            for a, b in all_pairs(program)
        }
        return all_pairs(mixed) != expected or races(mixed) != bool(expected)

    async_only = [random_program(seed, INDEPENDENT, streams=("s", "t", "s1")) for seed in range(29_000, 29_400)]
    no_sync_fill = [program for program in async_only if _only_async(program)]
    assert len(no_sync_fill) > 200
    assert_never(
        changes,
        [
            program
            for program in no_sync_fill
            if _only_async(random_program(seed_of(program) + 1, INDEPENDENT, streams=("s", "t", "s1")))
        ],
    )


def _only_async(program: Program) -> bool:
    return not any(isinstance(op, p.Memset) and op.api is p.Api.SYNC for op in program.ops)


def test_the_order_in_which_a_graph_lists_its_nodes_changes_nothing() -> None:
    def changes(program: Program) -> bool:
        rng = Random(seed_of(program))
        ops = tuple(
            replace(op, nodes=tuple(rng.sample(op.nodes, len(op.nodes)))) if isinstance(op, p.GraphLaunch) else op
            for op in program.ops
        )
        other = replace(program, ops=ops)
        return all_pairs(other) != all_pairs(program) or races(other) != races(program)

    kinds = ("graph_launch", "stream_wait_event", "launch")
    assert_never(changes, [program for program in programs(30_000, 500, kinds) if _one_record_a_launch(program)])


def _one_record_a_launch(program: Program) -> bool:
    """True unless two nodes of one launch record one event: which of the two captures stays is then open."""
    launches = [op for op in program.ops if isinstance(op, p.GraphLaunch)]
    recorded = [[node.record for node in op.nodes if node.record is not None] for op in launches]
    return all(len(set(events)) == len(events) for events in recorded)


# ── cost ──


class Counter:
    """Counts comparisons of two ranges."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("overlap", "contains"):
            monkeypatch.setattr(shadow, name, self._counted(getattr(shadow, name)))

    def _counted(self, f: Callable[[Range, Range], object]) -> Callable[[Range, Range], object]:
        def counted(a: Range, b: Range) -> object:
            self.count += 1
            return f(a, b)

        return counted


def comparisons(monkeypatch: pytest.MonkeyPatch, scale: int, launches: int = 20_000) -> int:
    """Comparisons for launches on four streams over 600 ranges of one table, which is scaled as a whole."""
    with monkeypatch.context() as patch:
        counter, checker, rng = Counter(patch), Checker(), Random(7)
        offsets = [rng.randrange(400) * scale for _ in range(200)]
        shapes = [Range("t", off, scale, rows, 40 * scale if rows > 1 else 0) for rows in (1, 2, 5) for off in offsets]
        for k in range(launches):
            read, write = rng.choice(shapes), rng.choice(shapes)
            checker.launch(f"s{k % 4}", reads=[read], writes=[write], name="k", site=("loop", k % 5))
            if k % 100 == 0:
                checker.device_synchronize()
        return counter.count


def test_the_number_of_comparisons_does_not_depend_on_the_size_of_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    of_bytes = comparisons(monkeypatch, scale=1)
    assert of_bytes > 0
    assert comparisons(monkeypatch, scale=2**40) == of_bytes
    # Candidates are looked up by the power of two of their extent, which scaling by 10^12 rounds otherwise.
    assert abs(comparisons(monkeypatch, scale=10**12) - of_bytes) < 0.05 * of_bytes


def test_a_range_that_was_seen_before_is_looked_up_and_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        counter, checker = Counter(patch), Checker()
        for _ in range(20_000):
            checker.launch("s", reads=[Range("a", 0, 8)], writes=[Range("b", 0, 8)], site=("loop", 1))
        assert counter.count <= 4


@pytest.mark.parametrize("fresh", [False, True])
def test_a_block_that_is_handed_out_again_and_again_costs_the_same_each_time(
    monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    def cost(times: int) -> int:
        with monkeypatch.context() as patch:
            counter, checker = Counter(patch), Checker()
            for k in range(times):
                buf = f"t{k}" if fresh else "t"
                checker.tensor_alloc(buf, "block")
                checker.launch("s", writes=[Range(buf, 0, 64)], site=("loop", 1))
                checker.launch("s", reads=[Range(buf, 0, 64)], site=("loop", 2))
                checker.tensor_free(buf)
            return counter.count

    assert cost(600) <= 3 * cost(300)


# ── memory ──


def test_forgetting_what_the_host_has_seen_changes_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (
        "launch",
        "device_sync",
        "stream_sync",
        "event_record",
        "stream_wait_event",
        "graph_launch",
        "tensor_alloc",
    )
    some = programs(31_000, 600, kinds)
    kept = [races(program) for program in some]
    monkeypatch.setattr(history, "SWEEP_AT", 1)
    assert [races(program) for program in some] == kept


def test_a_range_forgotten_in_the_middle_of_a_launch_is_known_again_after_it() -> None:
    """The new range of y makes the checker forget those of x that the host has seen, also the one it reads next."""
    checker, rows = Checker(), [Range("x", 8 * k, 8) for k in range(history.SWEEP_AT)]
    for row in rows:
        checker.launch("s", writes=[row], site=("fill", 1))
    checker.device_synchronize()
    checker.launch("s", reads=[Range("y", 0, 8), rows[0]], name="read", site=("read", 1))
    checker.launch("t", writes=[rows[0]], name="write", site=("write", 1))
    assert [(race.kind, race.first.name, race.second.name) for race in checker.races()] == [("WAR", "read", "write")]
