"""``check``: the verdict on a whole program, with every race explained."""

from dataclasses import replace

from refimpl import program as p
from refimpl.order.advice import advised, missing_edge
from refimpl.order.checker import Checker, Site
from refimpl.order.conflicts import conflicts
from refimpl.order.copies import HostRule, copy_rule, fill_rule, runs_on
from refimpl.order.explain import common_ancestor
from refimpl.order.flags import ancestors, deadlock, has_flags
from refimpl.order.graph import Graph, Step, blocks_before, build
from refimpl.order.report import Deadlock, Race, Report, Touch
from refimpl.program import Op, Program, StreamKind, label

EXPLAIN_AT_MOST = 100
"""Races per program for which the last common ancestor is looked up; each costs one walk over the program."""


def check(program: Program, as_observed: bool = False) -> Report:
    """Races, deadlock and lints of a program: every schedule that the ordering rules allow is judged, not one run.

    Args:
        as_observed: count also on what current drivers do beyond NVIDIA's promises (an allocation is a barrier, a
            synchronous copy from pageable
            memory returns after its DMA, a synchronous fill of managed memory holds the host).

    Returns:
        A report; one race for each pair of ops, or of call sites where the ops say theirs.

    Example:
        >>> from refimpl.program import Buffer, Launch, Range, Stream
        >>> lens = Range("new_seq_lens", 0, 64)
        >>> program = Program(
        ...     streams={"forward": Stream(), "schedule": Stream()}, buffers={"new_seq_lens": Buffer(64)},
        ...     ops=(Launch(stream="forward", writes=(lens,)), Launch(stream="schedule", reads=(lens,))),
        ... )
        >>> str(check(program).verdict)
        'race'
    """
    checker = run(program, as_observed)
    races = checker.races()
    stuck: Deadlock | None = None
    if races or any(isinstance(op, p.StreamWaitValue) for op in program.ops):
        graph = build(program, as_observed)
        stuck = deadlock(graph)
        if has_flags(graph):
            races = races_in(graph)
        races = [_with_site(program, advised(program, _explained(graph, race, k))) for k, race in enumerate(races)]
    return Report(program.id, tuple(races), stuck, tuple(checker.lints()), program.disputed)


def run(program: Program, as_observed: bool = False) -> Checker:
    """A streaming checker that was told of every op of the program; flags are the one thing it does not know."""
    checker = Checker()
    for name, stream in program.streams.items():
        checker.stream(name, blocking=stream.kind is not StreamKind.NONBLOCKING, device=stream.device)
    for buf, block in blocks_before(program).items():
        checker.lives_in(buf, block)
    for index, op in enumerate(program.ops):
        _tell(checker, program, op, (op.site or str(index), 0), as_observed)
    return checker


def races_in(graph: Graph) -> list[Race]:
    """All racing pairs of ops by reachability in the graph: slower than the clocks, and it knows of flags."""
    before = ancestors(graph)
    touching: dict[str, list[Step]] = {}
    for step in graph.steps:
        for memory in dict.fromkeys(memory for memory, _ in (*step.reads, *step.writes)):
            touching.setdefault(memory, []).append(step)
    found: dict[tuple[int, int], Race] = {}
    for steps in touching.values():
        for k, b in enumerate(steps):
            for a in steps[:k]:
                if before[b.index] >> a.index & 1 or before[a.index] >> b.index & 1 or (a.op, b.op) in found:
                    continue
                for kind, bytes_ in conflicts(a, b):
                    first, second = Touch(a.op, a.name, a.lane), Touch(b.op, b.name, b.lane)
                    owner = next((r.buf for _, r in (*a.reads, *a.writes)), bytes_.buf)
                    found[a.op, b.op] = Race(
                        kind, bytes_, first, second, missing_edge(kind, first, second, (owner, bytes_.buf))
                    )
                    break
    return sorted(found.values(), key=lambda race: (race.second.op, race.first.op))


def _explained(graph: Graph, race: Race, number: int) -> Race:
    if number >= EXPLAIN_AT_MOST:
        return race
    step = common_ancestor(graph, race.first.op, race.second.op)
    return race if step is None else replace(race, ancestor=Touch(step.op, step.name, step.lane))


def _with_site(program: Program, race: Race) -> Race:
    def at(touch: Touch) -> Touch:
        return replace(touch, site=program.ops[touch.op].site)

    return replace(race, first=at(race.first), second=at(race.second), ancestor=race.ancestor and at(race.ancestor))


def _tell(checker: Checker, program: Program, op: Op, site: Site, as_observed: bool) -> None:
    name = label(op)
    match op:
        case p.Launch():
            checker.launch(op.stream, op.reads, op.writes, name, site)
        case p.Memcpy():
            rule, stream = copy_rule(op, program.buffers, as_observed), runs_on(op)
            if rule is HostRule.STAGES:
                checker.staged_copy(stream, op.src, op.dst, name, site)
                return
            checker.launch(stream, (op.src,), (op.dst,), name, site)
            if rule is HostRule.BLOCKS:
                checker.join_host(stream)
        case p.Memset():
            checker.launch(runs_on(op), (), (op.dst,), name, site)
            if fill_rule(op, program.buffers, as_observed) is HostRule.BLOCKS:
                checker.join_host(runs_on(op))
        case p.EventRecord():
            checker.record(op.event, op.stream)
        case p.StreamWaitEvent():
            checker.wait(op.event, op.stream)
        case p.StreamWaitStream():
            checker.wait_stream(op.stream, op.on)
        case p.EventSync() | p.EventQuery():
            checker.synchronize(op.event)
        case p.StreamSync() | p.StreamQuery():
            checker.stream_synchronize(op.stream)
        case p.DeviceSync():
            checker.device_synchronize()
        case p.HostRead():
            checker.host_access((op.range,), (), name, site)
        case p.HostWrite():
            checker.host_access((), (op.range,), name, site)
        case p.HostAsyncBegin():
            checker.agent_begin(op.id, *p.accesses(op), site=site)
        case p.HostAsyncWait():
            checker.agent_wait(op.id)
        case p.GraphLaunch():
            checker.graph_launch(op.stream, op.nodes, name, site)
        case p.StreamWriteValue() | p.StreamWaitValue():
            # Nothing is touched, but on the legacy stream it orders the blocking streams as any action does.
            checker.launch(op.stream, (), (), name, site)
        case p.SetDevice():
            checker.set_device(op.device)
        case p.Alloc():
            buffer = program.buffers[op.buf]
            if as_observed and buffer.mem is not p.Mem.PAGEABLE:
                checker.driver_alloc(None if buffer.mem is p.Mem.PINNED else buffer.device)
            else:
                checker.host_work()
        case p.TensorAlloc():
            checker.tensor_alloc(op.buf, op.block, op.stream)
        case p.TensorFree():
            checker.tensor_free(op.buf)
        case p.RecordStream():
            checker.record_stream(op.buf, op.stream)
        case _:
            checker.host_work()
