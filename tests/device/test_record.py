"""Running code becomes a program, with the verdict that its order deserves, and a trace of when it ran."""

from typing import Any

import pytest
import torch

from refimpl import device
from refimpl.order import check
from refimpl.program import (
    EventRecord,
    EventSync,
    GraphLaunch,
    HostRead,
    HostWrite,
    Launch,
    Memcpy,
    Program,
    SpanKind,
    StreamWaitEvent,
    StreamWaitStream,
    Verdict,
    program_from_json,
    program_to_json,
)
from refimpl.record import Recording, record


def kinds(program: Program) -> list[str]:
    return [type(op).__name__ for op in program.ops]


def handover(dev: Any, fence: bool) -> Recording:
    writer, reader = dev.Stream(), dev.Stream()
    lens = torch.zeros(4, device="sim")
    dev.synchronize()
    with record("sim") as recording:
        for thing, name in ((writer, "forward"), (reader, "schedule"), (lens, "lens")):
            recording.name(thing, name)
        with dev.stream(writer), dev.cost("verify", us=4000):
            lens.add_(1)
        done = dev.Event()
        recording.name(done, "verify_done")
        done.record(writer)
        if fence:
            reader.wait_event(done)
        with dev.stream(reader):
            lens + 0
    return recording


@pytest.mark.parametrize(("fence", "verdict"), [(False, Verdict.RACE), (True, Verdict.OK)])
def test_the_verdict_of_a_recording_is_that_of_its_order(dev: Any, fence: bool, verdict: Verdict) -> None:
    assert check(handover(dev, fence).program()).verdict is verdict


def test_names_and_issue_order_are_kept(dev: Any) -> None:
    program = handover(dev, True).program()
    assert kinds(program) == ["Launch", "EventRecord", "StreamWaitEvent", "Launch"]
    verify, record_op, wait_op, _ = program.ops
    assert isinstance(verify, Launch)
    assert (verify.stream, verify.name, verify.us) == ("forward", "verify", 4000)
    assert record_op == EventRecord(event="verify_done", stream="forward", site=record_op.site)
    assert wait_op == StreamWaitEvent(event="verify_done", stream="schedule", site=wait_op.site)
    assert verify.site is not None
    assert verify.site.startswith("test_record.py:")
    assert verify.site.endswith("(handover)")


def test_a_recording_goes_through_json(dev: Any) -> None:
    program = handover(dev, True).program()
    assert program_from_json(program_to_json(program)) == program


def test_the_trace_shows_when_it_ran_and_who_waited(dev: Any) -> None:
    recording = handover(dev, True)
    trace = recording.trace()
    assert trace.lanes == ("host", "schedule", "forward")
    verify = next(span for span in trace.spans if span.name == "verify")
    waited = next(span for span in trace.spans if span.kind is SpanKind.WAIT)
    assert verify.us == pytest.approx(4000)
    assert (waited.lane, waited.end_us) == ("schedule", verify.end_us)
    assert all(span.op is not None and span.op < len(recording.program().ops) for span in trace.spans)


@pytest.mark.parametrize(("synchronize", "verdict"), [(False, Verdict.RACE), (True, Verdict.OK)])
def test_an_early_host_read_of_a_pinned_target_is_a_race(dev: Any, synchronize: bool, verdict: Verdict) -> None:
    x, target = torch.ones(2, device="sim"), device.pinned(2, torch.float32, "sim")
    dev.synchronize()
    with record("sim") as recording:
        target.copy_(x, non_blocking=True)
        done = dev.current_stream().record_event()
        if synchronize:
            done.synchronize()
        target.tolist()
    program = recording.program()
    assert [type(op) for op in program.ops] == [Memcpy, EventRecord, *([EventSync] if synchronize else []), HostRead]
    assert check(program).verdict is verdict


def test_a_pinned_source_changed_too_early_is_a_race(dev: Any) -> None:
    x, source = torch.ones(2, device="sim"), device.pinned(2, torch.float32, "sim")
    dev.synchronize()
    with record("sim") as recording:
        x.copy_(source, non_blocking=True)
        source.fill_(3)
    program = recording.program()
    assert [type(op) for op in program.ops] == [Memcpy, HostWrite]
    assert check(program).verdict is Verdict.RACE


def test_wait_stream_is_one_op(dev: Any) -> None:
    first, second = dev.Stream(), dev.Stream()
    with record("sim") as recording:
        second.wait_stream(first)
    assert kinds(recording.program()) == [StreamWaitStream.__name__]


def graph_loop(dev: Any, wait: bool) -> Program:
    stream, other = dev.Stream(), dev.Stream()
    static = torch.ones(2, device="sim")
    graph = dev.CUDAGraph()
    with dev.graph(graph, stream=stream), dev.cost("step", us=1000):
        out = static + 1
        out.mul_(2)
    dev.synchronize()
    with record("sim") as recording:
        recording.name(static, "static")
        recording.name(graph, "decode")
        with dev.stream(stream):
            graph.replay()
        if wait:
            other.wait_stream(stream)
        with dev.stream(other):
            static.fill_(5)
    return recording.program()


def test_a_static_input_overwritten_behind_a_replay_is_a_race(dev: Any) -> None:
    program = graph_loop(dev, wait=False)
    launch = program.ops[0]
    assert isinstance(launch, GraphLaunch)
    assert (launch.name, [node.name for node in launch.nodes]) == ("decode", ["step"])
    assert check(program).verdict is Verdict.RACE
    assert check(graph_loop(dev, wait=True)).verdict is Verdict.OK


def test_branches_of_a_graph_keep_their_order(dev: Any) -> None:
    side, x = dev.Stream(), torch.ones(2, device="sim")
    graph = dev.CUDAGraph()
    with dev.graph(graph):
        side.wait_stream(dev.current_stream())
        with dev.stream(side):
            x.add_(1)
        dev.current_stream().wait_stream(side)
        x.mul_(2)
    with record("sim") as recording:
        graph.replay()
    launch = recording.program().ops[0]
    assert isinstance(launch, GraphLaunch)
    add, mul = launch.nodes
    assert (add.deps, mul.deps) == ((), (add.name,))


def test_columns_of_a_table_do_not_conflict(dev: Any) -> None:
    table = torch.zeros(4, 4, device="sim")
    dev.synchronize()
    with record("sim") as recording:
        for column in range(2):
            with dev.stream(dev.Stream()):
                table[:, column].fill_(1)
    assert check(recording.program()).verdict is Verdict.OK


def test_steps_are_carried(dev: Any) -> None:
    x = torch.zeros(1, device="sim")
    with record("sim") as recording:
        for step in range(2):
            recording.step(step)
            x.add_(1)
    assert [op.step for op in recording.program().ops] == [0, 1]


def test_a_recording_changes_no_time(dev: Any) -> None:
    def run() -> float:
        begin = dev.host_clock_us()
        x = torch.zeros(2, device="sim")
        x.add_(1)
        x.cpu()
        return dev.host_clock_us() - begin

    plain = run()
    with record("sim"):
        assert run() == pytest.approx(plain)


def test_two_things_of_one_name_are_an_error(dev: Any) -> None:
    with record("sim") as recording:
        recording.name(dev.Stream(stream_id=1), "forward")
        with pytest.raises(ValueError, match="'forward'"):
            recording.name(dev.Stream(stream_id=2), "forward")


def test_a_gpu_is_not_recorded_in_a_process_of_sim(dev: Any) -> None:
    with pytest.raises(RuntimeError, match="use CUDA in a process of its own"), record("cuda"):
        pass


def test_durations_can_be_tied_to_a_parameter(dev: Any) -> None:
    with record("sim") as recording:
        device.host_work("sim", 300)
    (work,) = recording.program(params={"host work": "host"}).ops
    assert (work.us, work.param) == (300, "host")


def test_what_a_region_names_is_one_op(dev: Any) -> None:
    x, y = torch.ones(2, device="sim"), torch.ones(2, device="sim")
    dev.synchronize()
    with record("sim") as recording:
        with dev.cost("prepare", us=20):
            x.copy_(y)
            x.add_(1)
        y.mul_(2)
    prepare, last = recording.program().ops
    assert isinstance(prepare, Launch)
    assert isinstance(last, Launch)
    assert (prepare.name, prepare.us, last.name) == ("prepare", 20, "mul_")
    assert [r.buf for r in prepare.reads] == ["device1"]
    assert [r.buf for r in prepare.writes] == ["device2"]


def test_what_was_queued_before_a_recording_has_run_when_it_begins(dev: Any) -> None:
    stream = dev.Stream()
    for seed in range(8):
        with dev.schedule(dev.Adversary(seed=seed)):
            value = torch.full((4,), 5.0, device="sim")
            with record("sim"), dev.stream(stream):
                value += 1
            assert value.tolist() == [6.0] * 4


def test_operators_are_seen_in_inference_mode(dev: Any) -> None:
    layer, x = torch.nn.Linear(8, 8, device="sim"), torch.ones(2, 8, device="sim")
    dev.synchronize()
    with record("sim") as recording, torch.inference_mode():
        recording.name(layer.weight, "weight")
        layer(x).softmax(-1)
    assert [r.buf for op in recording.ops if isinstance(op, Launch) for r in op.reads].count("weight") == 1
