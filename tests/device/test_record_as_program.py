"""How a recording is asked for, and that it stands for its program."""

import subprocess
import sys
from typing import Any

import pytest
import torch

import refimpl
from refimpl import device
from refimpl.order import check
from refimpl.program import GraphLaunch, HostWork, Program, Verdict, program_from_json, program_to_json
from refimpl.record import Recording, record


def test_importing_the_package_imports_no_torch() -> None:
    command = "import sys, refimpl; assert 'torch' not in sys.modules; refimpl.record; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", command], check=True)


@pytest.mark.parametrize("first", ["refimpl.record('sim')", "from refimpl.record import record; record('sim')"])
def test_record_is_the_package_and_the_function(first: str) -> None:
    command = f"import refimpl; {first}; refimpl.record('sim'); refimpl.touches(reads=[]); refimpl.record.Recording"
    subprocess.run([sys.executable, "-c", command], check=True)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'recorder'"):
        refimpl.recorder  # noqa: B018


def test_both_names_record(dev: Any) -> None:
    for made in (refimpl.record("sim"), record("sim"), refimpl.record()):
        with made as recording:
            device.host_work("sim", 5)
        assert isinstance(recording, Recording)
        assert [type(op) for op in recording.ops] == [HostWork]


def test_a_recording_stands_for_its_program(dev: Any) -> None:
    x, side = torch.zeros(4, device="sim"), dev.Stream()
    dev.synchronize()
    with refimpl.record() as recording:
        x.add_(1)
        with dev.stream(side):
            x.mul_(2)
    program = recording.program()
    assert check(recording).verdict is check(program).verdict is Verdict.RACE
    for field in Program.__dataclass_fields__:
        assert getattr(recording, field) == getattr(program, field)
    assert recording.lanes == program.lanes
    assert program_from_json(program_to_json(recording)) == program


def test_a_recording_follows_what_is_added_and_named(dev: Any) -> None:
    x = torch.zeros(4, device="sim")
    with refimpl.record() as recording:
        assert recording.ops == ()
        x.add_(1)
        assert len(recording.ops) == 1
        x.add_(1)
    assert len(recording.ops) == 2
    assert list(recording.buffers) == ["device1"]
    recording.name(x, "lens")
    assert list(recording.buffers) == ["lens"]
    assert recording.ops is recording.ops


def test_two_recordings_cannot_be_open_at_once(dev: Any) -> None:
    with refimpl.record(), pytest.raises(RuntimeError, match="open already"), refimpl.record():
        pass
    with pytest.raises(ZeroDivisionError), refimpl.record():
        1 / 0  # noqa: B018
    with refimpl.record() as recording:
        device.host_work("sim", 5)
    assert len(recording.ops) == 1


def test_the_end_of_a_recording_is_no_part_of_it(dev: Any) -> None:
    with refimpl.record() as recording:
        torch.zeros(4, device="sim")
    assert [op.op for op in recording.ops] == ["launch"]
    assert all(span.end_us < float("inf") for span in recording.trace().spans)


def test_a_recording_keeps_no_memory_and_moves_none(dev: Any) -> None:
    def run() -> list[int]:
        found = []
        for _ in range(3):
            x = torch.zeros(1000, device="sim")
            y = x[torch.tensor([1, 2], device="sim")] * 2
            found += [x.data_ptr(), y.data_ptr()]
        return found

    run()
    before, plain = dev.memory_allocated(), run()
    with refimpl.record() as recording:
        x = torch.zeros(10, device="sim")
        recording.name(x, "x")
        del x
        assert run() == plain
    assert dev.memory_allocated() == before
    assert "x" in recording.buffers


def test_lives_on_one_stream_are_not_told(dev: Any) -> None:
    with refimpl.record() as recording:
        for _ in range(3):
            x = torch.zeros(3 << 20, device="sim")
            x.add_(1)
            del x
    assert {op.op for op in recording.ops} == {"launch"}


def test_a_handed_on_block_is_told_with_its_stream_and_both_owners(dev: Any) -> None:
    side = dev.Stream()
    with refimpl.record() as recording:
        x = torch.zeros(3 << 20, device="sim")
        recording.name(x, "old")
        side.wait_stream(dev.current_stream())
        with dev.stream(side):
            x.add_(1)
        dev.current_stream().wait_stream(side)
        del x
        y = torch.ones(3 << 20, device="sim")
        recording.name(y, "new")
    told = [(op.op, op.buf, op.stream) for op in recording.ops if op.op.startswith("tensor_")]  # type: ignore[attr-defined]
    assert told == [
        ("tensor_alloc", "old", "default"),
        ("tensor_free", "old", "default"),
        ("tensor_alloc", "new", "default"),
    ]
    assert len({op.block for op in recording.ops if op.op.startswith("tensor_")}) == 1  # type: ignore[attr-defined]
    assert check(recording).verdict is Verdict.OK


def test_an_old_owner_from_before_the_recording_counts(dev: Any) -> None:
    side, x = dev.Stream(), torch.zeros(3 << 20, device="sim")
    with refimpl.record() as recording:
        with dev.stream(side):
            x.add_(1)
        del x
        y = torch.ones(3 << 20, device="sim")
    assert check(recording).verdict is Verdict.RACE
    del y


def test_memory_of_a_graph_is_shared_by_its_owners_at_every_replay(dev: Any) -> None:
    x, graph = torch.zeros(1000, device="sim"), dev.CUDAGraph()
    with refimpl.record() as recording:
        with dev.graph(graph):
            y = x + 1
            del y
            z = x + 2
        graph.replay()
        graph.replay()
        del z
    assert check(recording).verdict is Verdict.OK
    assert not any(op.op.startswith("tensor_") for op in recording.ops)
    launches = [op for op in recording.ops if isinstance(op, GraphLaunch)]
    (memory,) = {r.buf for launch in launches for node in launch.nodes for r in node.writes}
    assert memory != "device1"


def test_two_branches_of_a_graph_race_on_memory_that_one_freed_for_the_other(dev: Any) -> None:
    x, graph, side = torch.zeros(1000, device="sim"), dev.CUDAGraph(), dev.Stream()
    with refimpl.record() as recording:
        with dev.graph(graph):
            y = x + 1
            side.wait_stream(dev.current_stream())
            with dev.stream(side):
                y.sum()
            del y
            z = x + 2
            dev.current_stream().wait_stream(side)
        graph.replay()
        del z
    assert check(recording).verdict is Verdict.RACE


def test_a_process_of_sim_never_meets_the_tap_of_a_gpu() -> None:
    command = (
        "import sys, torch, refimpl\n"
        "with refimpl.record('sim'): torch.zeros(4, device='sim')\n"
        "assert not [name for name in sys.modules if name.startswith('refimpl.record.') and 'cuda' in name]\n"
        "assert not torch.cuda.is_initialized()"
    )
    subprocess.run([sys.executable, "-c", command], check=True)


def test_each_op_tells_the_innermost_region_in_which_the_host_issued_it() -> None:
    dev = device.sim()
    stream, graph, x = dev.Stream(), dev.CUDAGraph(), torch.zeros(8, device="sim")
    with dev.graph(graph, stream=stream), dev.cost("captured"):
        x.add_(1)
    with record("sim") as recording, dev.stream(stream):
        x.add_(1)
        with dev.cost("outer"):
            x.to("cpu", non_blocking=True)
            with dev.cost("inner"):
                graph.replay()
            dev.Event().record(stream)
    kinds = [op.op for op in recording.ops]
    assert kinds == ["launch", "memcpy", "graph_launch", "event_record"]
    assert recording.regions == (None, "outer", "inner", "outer")
