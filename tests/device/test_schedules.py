"""The adversary's strategies, each with what it says of itself, and the branches of a graph as lanes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from refimpl import device
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.ops import Kind, Observer, Op, Queue
from refimpl.device.simulator.schedules.adversary import STRATEGIES


class Turns(Observer):
    """Who had each turn: "host" for a call, and the name of an op that ran."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.lanes: list[int | str] = []

    def on_issue(self, op: Op) -> None:
        self.names.append("host")
        self.lanes.append("host")

    def on_done(self, op: Op) -> None:
        self.names.append(op.name)
        self.lanes.append(op.queue.lane)


def ran(dev: Any, schedule: Any, ops: list[tuple[int, str]]) -> Turns:
    """The turns of a program without waits: `ops` are lanes and names, in the order of issue."""
    queues: dict[int, Queue] = {}
    with dev.observe(Turns()) as turns, dev.schedule(schedule):
        issued = [Op(Kind.LAUNCH, name, queues.setdefault(lane, Queue(lane)), 1.0) for lane, name in ops]
        for op in issued:
            DEVICE.issue(op)
        DEVICE.runner.finish(issued, DEVICE)
    return turns


def order(turns: Turns) -> list[str]:
    return [name for name in turns.names if name != "host"]


TWO = [(1, "a"), (2, "b")]
AROUND = [(1, "a1"), (1, "a2"), (2, "b")]


@pytest.mark.parametrize("strategy", [*STRATEGIES, None])
def test_each_strategy_finds_either_order_of_two_ops(dev: Any, strategy: Any) -> None:
    assert {"".join(order(ran(dev, dev.Adversary(s, strategy=strategy), TWO))) for s in range(40)} == {"ab", "ba"}


def test_by_default_seeds_take_the_strategies_in_turn(dev: Any) -> None:
    program = [(lane, f"{lane}.{step}") for step in range(6) for lane in (1, 2, 3)]
    for seed, strategy in enumerate(STRATEGIES):
        named = ran(dev, dev.Adversary(seed, strategy=strategy), program).names
        assert ran(dev, dev.Adversary(seed), program).names == named


def test_pct_finds_a_bug_of_depth_one_as_often_as_it_promises(dev: Any) -> None:
    """The later op first: of three lanes, the host counted, at least one seed in three."""
    found = [order(ran(dev, dev.Adversary(s, strategy="pct", depth=1), TWO)) == ["b", "a"] for s in range(300)]
    assert sum(found) >= 300 / 3 * 0.8


def test_pct_finds_a_bug_of_depth_two_as_often_as_it_promises(dev: Any) -> None:
    """An op between two that were issued before it: 3 calls, 3 ops and the synchronizes make at most 10 turns."""

    def found(depth: int) -> int:
        schedules = (dev.Adversary(s, strategy="pct", depth=depth, steps=10) for s in range(400))
        return sum(order(ran(dev, schedule, AROUND)) == ["a1", "b", "a2"] for schedule in schedules)

    assert found(1) == 0
    assert found(2) >= 400 / (3 * 10)


def preemptions(lanes: list[int | str], program: list[tuple[int, str]]) -> int:
    """Switches away from a lane that could go on; the host can until all is issued."""
    left = {"host": len(program)}
    count = 0
    for before, now in zip(lanes, [*lanes[1:], None], strict=True):
        left[before] = left.get(before, 0) - 1
        if before == "host":
            lane = program[len(program) - left["host"] - 1][0]
            left[lane] = left.get(lane, 0) + 1
        count += now is not None and now != before and left[before] > 0
    return count


@pytest.mark.parametrize("bound", [0, 1, 3])
def test_bounded_stays_within_its_preemptions_and_reaches_them(dev: Any, bound: int) -> None:
    program = [(1 + step % 3, f"{step}") for step in range(18)]
    most = 0
    for seed in range(60):
        schedule = dev.Adversary(seed, strategy="bounded", preemptions=bound, steps=30)
        lanes = ran(dev, schedule, program).lanes
        most = max(most, preemptions(lanes, program))
    assert most == bound


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_host_is_a_lane_too(dev: Any, strategy: Any) -> None:
    """It may issue all before anything runs, or see each op run first."""
    names = ["".join(n[0] for n in ran(dev, dev.Adversary(s, strategy=strategy), AROUND).names) for s in range(60)]
    assert {"hhh", "hah"} <= {n[:3] for n in names}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_poll_loop_ends_under_each_strategy(dev: Any, strategy: Any) -> None:
    for seed in range(20):
        with dev.schedule(dev.Adversary(seed, strategy=strategy)):
            device.sleep_stream("sim", 5)
            event = dev.current_stream().record_event()
            while not event.query():
                pass


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_ran_before_the_host_went_on_ended_by_the_hosts_clock(dev: Any, strategy: Any) -> None:
    for seed in range(10):
        with dev.schedule(dev.Adversary(seed, strategy=strategy)):
            for _ in range(4):
                device.sleep_stream("sim", 500)
                mark = dev.current_stream().record_event()
                if mark.mark.done:
                    assert mark.mark.end_us <= dev.host_clock_us()


@pytest.mark.parametrize(
    "wrong",
    [
        {"seed": -1},
        {"seed": True},
        {"seed": 1, "strategy": "luck"},
        {"seed": 1, "depth": 0},
        {"seed": 1, "preemptions": -1},
        {"seed": 1, "steps": 0},
        {"seed": 1, "torn": 1.5},
        {"seed": 1, "change": -0.1},
    ],
)
def test_what_is_no_adversary_is_refused_in_one_sentence(dev: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"Adversary\(.*: use") as refused:
        dev.Adversary(**wrong)
    assert "\n" not in str(refused.value)


def branches(dev: Any) -> Callable[[], list[str]]:
    """A graph of two parallel chains, launched beside a third stream; gives the names in the order in which they
    ran."""
    left, right, beside = (torch.zeros(1, device="sim") for _ in range(3))
    side, third = dev.Stream(), dev.Stream()
    with dev.graph(graph := dev.CUDAGraph()):
        side.wait_stream(dev.current_stream())
        with dev.stream(side):
            right.mul_(1)
            right.div_(1)
        left.add_(1)
        left.sub_(1)
        dev.current_stream().wait_stream(side)
        left.neg_()
    dev.synchronize()

    def run() -> list[str]:
        with dev.observe(Turns()) as turns:
            graph.replay()
            with dev.stream(third):
                beside.exp_()
            dev.synchronize()
        return [name for name in turns.names if name in ("add_", "sub_", "mul_", "div_", "neg_", "exp_")]

    return run


def test_branches_of_a_graph_interleave_with_each_other_and_with_streams(dev: Any) -> None:
    run, orders = branches(dev), set()
    for seed in range(200):
        with dev.schedule(dev.Adversary(seed, strategy="random")):
            orders.add(tuple(run()))
    inner = {tuple(name for name in names if name not in ("exp_", "neg_")) for names in orders}
    assert len(inner) == 6  # all ways to interleave two chains of two
    assert {names.index("exp_") for names in orders} == set(range(6))
    assert all(names.index("add_") < names.index("sub_") < names.index("neg_") for names in orders)
    assert all(names.index("mul_") < names.index("div_") < names.index("neg_") for names in orders)


def test_branches_of_a_graph_have_lanes_below_zero(dev: Any) -> None:
    run = branches(dev)
    # The replay and the other launch are issued; the branch runs first, its wait and both of its ops.
    with dev.schedule(dev.Replay("h2.1.-1x3")):
        names = run()
    assert names[:2] == ["mul_", "div_"]
