"""Every run has an id, and the id gives the run again."""

from typing import Any

import pytest
import torch

from refimpl import device
from refimpl.device.simulator.machine import DEVICE
from refimpl.device.simulator.ops import Kind, Op, Queue
from refimpl.program import UserError, turns_of
from tests.device.random_streams import Code

SEEDS = range(24)


def two_lanes(dev: Any) -> list[float]:
    """Seven calls of the host before it reads: zeros on lane 1, a synchronize, writes on lane 2 and reads on lane 3 by
    turns, a synchronize."""
    writer, reader = dev.Stream(), dev.Stream()
    x = torch.zeros(1, device="sim")
    dev.synchronize()
    with dev.stream(writer):
        x.fill_(1)
    with dev.stream(reader):
        first = x + 0
    with dev.stream(writer):
        x.fill_(2)
    with dev.stream(reader):
        second = x + 0
    dev.synchronize()
    return [first.item(), second.item()]


@pytest.mark.parametrize("seed", SEEDS)
def test_an_id_replays_random_code_to_the_byte(dev: Any, seed: int) -> None:
    code = Code(dev, seed)
    with dev.schedule(dev.Adversary(seed)) as run:
        expected = repr(code.run())
    with dev.schedule(dev.Replay(run.id)) as again:
        assert repr(code.run()) == expected
    assert again.id == run.id


@pytest.mark.parametrize("strategy", ["random", "pct", "bounded"])
def test_an_id_replays_torn_ops(dev: Any, strategy: str) -> None:
    torn = 0
    for seed in range(8):
        code = Code(dev, seed)
        with dev.schedule(dev.Adversary(seed, strategy=strategy, torn=1.0)) as run:
            expected = repr(code.run())
        torn += any(turn.pieces > 1 for turn in turns_of(run.id))
        with dev.schedule(dev.Replay(run.id)):
            assert repr(code.run()) == expected
    assert torn


@pytest.mark.parametrize("seed", range(6))
def test_a_run_in_virtual_time_has_an_id_too(dev: Any, seed: int) -> None:
    code = Code(dev, seed)
    with dev.schedule(dev.Timed()) as run:
        expected = repr(code.run())
    with dev.schedule(dev.Replay(run.id)):
        assert repr(code.run()) == expected


def test_an_id_does_not_depend_on_which_streams_of_the_pool_a_program_gets(dev: Any) -> None:
    with dev.schedule(dev.Adversary(4)) as run:
        expected = two_lanes(dev)
    for _ in range(5):
        dev.Stream()
    with dev.schedule(dev.Replay(run.id)):
        assert two_lanes(dev) == expected


def test_a_run_inside_another_leaves_the_outer_one_its_lanes(dev: Any) -> None:
    def nested() -> list[float]:
        first = two_lanes(dev)
        with dev.schedule(dev.Timed()):
            two_lanes(dev)
        return first + two_lanes(dev)

    for seed in range(6):
        with dev.schedule(dev.Adversary(seed)) as run:
            expected = nested()
        with dev.schedule(dev.Replay(run.id)):
            assert nested() == expected


def test_an_order_written_by_hand_is_taken(dev: Any) -> None:
    values = set()
    for named in ("h2.1.h5", "h2.1.h5.3.2.2.3", "h2.1.h5.3.3.2.2"):
        with dev.schedule(dev.Replay(named)):
            values.add(tuple(two_lanes(dev)))
    assert values == {(1, 2), (0, 2), (0, 0)}


def test_without_named_steps_ops_run_in_the_order_of_issue(dev: Any) -> None:
    with dev.schedule(dev.Replay("")) as run:
        assert two_lanes(dev) == [1, 2]
    assert run.id == ""


def test_an_id_leaves_out_the_end_that_nobody_chose(dev: Any) -> None:
    with dev.schedule(dev.Replay("h2.1.h5.3.2")) as run:
        two_lanes(dev)
        inside = run.id
        for _ in range(500):
            torch.ones(1, device="sim").add_(1)
    assert inside == run.id == "h2.1.h5.3"


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("h2.1.h4.4", "step 8 of 8 runs lane 4, which has no op"),
        ("2.h", "step 1 of 2 stands before the host's first call"),
        ("h2.1.h4.3/2.3/2", "step 9 of 9 splits 'add' on lane 3, which is split already"),
        ("h2.1.h6", "step 9 of 9 lets the host go on, which is blocked for 'fill_' on lane 2"),
        ("h99", "step 3 of 99 lets the host go on"),
        ("h2.1x9", "step 4 of 11 runs lane 1, which has no op"),
    ],
)
def test_an_id_of_another_program_is_an_error_of_one_sentence(dev: Any, named: str, why: str) -> None:
    with pytest.raises(UserError, match="belongs to another program") as refused, dev.schedule(dev.Replay(named)):
        two_lanes(dev)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_id_that_goes_on_after_the_end_is_an_error(dev: Any) -> None:
    with pytest.raises(UserError, match="step 3 of 40 comes after the program's end"), dev.schedule(dev.Replay("h40")):
        dev.synchronize()


def test_a_step_that_is_still_waiting_says_for_what(dev: Any) -> None:
    def handover() -> None:
        first, second = dev.Stream(), dev.Stream()
        with dev.stream(first):
            device.sleep_stream("sim", 5)
        second.wait_event(first.record_event())
        dev.synchronize()

    why = "lane 2, which is at 'wait', which waits for 'record' on lane 1"
    with pytest.raises(UserError, match=why), dev.schedule(dev.Replay("h4.2")):
        handover()


def test_text_that_is_no_id_is_refused_when_it_is_given(dev: Any) -> None:
    with pytest.raises(UserError, match="is no step"):
        dev.Replay("h3.x")


def test_after_an_error_the_device_is_idle_and_usable(dev: Any) -> None:
    x, event = torch.zeros(2, device="sim"), dev.Event()

    def fail() -> None:
        x.add_(1)
        event.record()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), dev.schedule(dev.Replay("h9")):
        fail()
    assert event.query()
    assert x.tolist() == [0, 0]
    assert two_lanes(dev) == [1, 2]


def test_an_op_that_fails_names_the_order_that_led_there(dev: Any) -> None:
    def fail() -> None:
        torch.zeros(3, device="sim").index_select(0, torch.tensor([7], device="sim"))
        dev.synchronize()

    with dev.schedule(dev.Adversary(1)) as run:
        with pytest.raises(RuntimeError, match="in the order of schedule") as failed:
            fail()
        named = run.id
    assert repr(named) in str(failed.value)
    with dev.schedule(dev.Replay(named)), pytest.raises(RuntimeError, match="index_select failed"):
        fail()


def test_the_id_is_at_hand_where_a_check_fails(dev: Any) -> None:
    with dev.schedule(dev.Adversary(4)) as run:
        two_lanes(dev)
        assert dev.current_schedule_id() == run.id


def test_outside_of_a_schedule_there_is_no_id() -> None:
    sim = device.sim()
    torch.ones(1, device="sim").item()
    assert sim.current_schedule_id() is None


class Flagged:
    """A wait on one queue for an op of another that is issued after it, as a flag in memory allows."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.waiting, self.setting = Queue(1), Queue(2)
        self.set = self.op("set", self.setting)
        self.after = self.op("wait", self.waiting)
        self.after.after = (self.set,)
        self.last = self.op("last", self.waiting)

    def op(self, name: str, queue: Queue) -> Op:
        return Op(Kind.LAUNCH, name, queue, 10.0, lambda: self.ran.append(name))

    def issue(self, *ops: Op) -> None:
        for op in ops:
            DEVICE.issue(op)
        DEVICE.runner.finish(ops, DEVICE)


SCHEDULES = [
    lambda dev: dev.Timed(),
    lambda dev: dev.Replay(""),
    *(lambda dev, s=s: dev.Adversary(s) for s in range(6)),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_wait_may_name_an_op_that_is_not_issued_yet(dev: Any, schedule: Any) -> None:
    program = Flagged()
    with dev.schedule(schedule(dev)) as run:
        program.issue(program.after, program.last, program.set)
    assert program.ran == ["set", "wait", "last"]
    assert program.set.end_us <= program.after.start_us
    again = Flagged()
    with dev.schedule(dev.Replay(run.id)):
        again.issue(again.after, again.last, again.set)
    assert again.ran == program.ran


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_deadlock_is_one_sentence(dev: Any, schedule: Any) -> None:
    program = Flagged()
    with pytest.raises(RuntimeError, match=r"^deadlock: ") as stuck, dev.schedule(schedule(dev)):
        program.issue(program.after, program.last)
    message = str(stuck.value)
    assert "the host waits for 'wait' on lane 1 and 'last' on lane 1" in message
    assert "lane 1 is at 'wait', which waits for 'set', which was not issued" in message
    assert "\n" not in message
    assert two_lanes(dev) == [1, 2]


def issue(schedule: Any, *ops: Op) -> None:
    with schedule:
        for op in ops:
            DEVICE.issue(op)


def test_two_lanes_that_wait_for_each_other_are_a_deadlock(dev: Any) -> None:
    for schedule in SCHEDULES:
        first, second = Op(Kind.WAIT, "a", Queue(1)), Op(Kind.WAIT, "b", Queue(2))
        first.after, second.after = (second,), (first,)
        with pytest.raises(RuntimeError, match=r"deadlock.*lane 1 is at 'a'.*lane 2 is at 'b'"):
            issue(dev.schedule(schedule(dev)), first, second)
