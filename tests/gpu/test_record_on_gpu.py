"""A recording on a GPU is the simulated device's program of the same code, and judges what really happened."""

import json
import subprocess
import sys
from typing import Any

import pytest
import torch

import refimpl
from refimpl import device
from refimpl.order import check
from refimpl.program import Launch, Verdict, label
from tests.conftest import ROOT
from tests.device.hazards import BODIES
from tests.device.snippets import SNIPPETS, outline, recorded

pytestmark = pytest.mark.gpu


@pytest.fixture
def dev() -> Any:
    cuda = device.get("cuda")
    device.sleep_stream("cuda", 10)
    cuda.synchronize()
    return cuda


@pytest.fixture(scope="module")
def on_sim() -> Any:
    command = [sys.executable, "-m", "tests.device.snippets", "sim"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", SNIPPETS)
def test_one_text_gives_one_program_on_both_devices(name: str, dev: Any, on_sim: Any) -> None:
    program = recorded(name, "cuda").program()
    found = json.loads(json.dumps(outline(program)))
    differs = [
        f"{label(op)}: {here}\n{' ' * 10}on sim: {there}"
        for op, here, there in zip(program.ops, found, on_sim[name], strict=False)
        if here != there
    ]
    assert differs == []
    assert len(found) == len(on_sim[name])


@pytest.mark.parametrize("name", BODIES)
def test_a_hazard_in_recorded_code_is_found_and_its_fix_is_proved(name: str, dev: Any) -> None:
    body, kind = BODIES[name]
    for fixed in (False, True):
        with refimpl.record("cuda") as program:
            body("cuda", dev, fixed)
        found = check(program)
        assert [race.kind for race in found.races] == ([] if fixed else [kind])
        dev.synchronize()


@pytest.mark.parametrize(("shift", "verdict"), [(2, Verdict.OK), (1, Verdict.RACE)])
def test_rows_that_device_indices_name_race_only_where_they_meet(dev: Any, shift: int, verdict: Verdict) -> None:
    table, side = torch.zeros(64, 8, device="cuda"), dev.Stream()
    even = torch.arange(0, 64, 2, device="cuda")
    other = (even + shift) % 64 + (1 if shift == 2 else -1)
    dev.synchronize()
    with refimpl.record("cuda") as recording:
        table.index_fill_(0, even, 1.0)
        with dev.stream(side):
            table.index_fill_(0, other, 2.0)
    assert check(recording).verdict is verdict
    assert recording.widened == ()


def test_a_recording_keeps_no_memory(dev: Any) -> None:
    before = dev.memory_allocated()
    with refimpl.record("cuda") as recording:
        x = torch.zeros(3 << 20, device="cuda")
        recording.name(x, "x")
        x[torch.tensor([1, 2], device="cuda")] = 1.0
        del x
    assert dev.memory_allocated() == before
    assert "x" in recording.buffers


def test_a_graph_that_nobody_saw_being_captured_is_refused(dev: Any) -> None:
    x, graph = torch.zeros(4, device="cuda"), dev.CUDAGraph()
    with dev.graph(graph):
        x.add_(1)
    with refimpl.record("cuda"), pytest.raises(RuntimeError, match="captured outside of any recording"):
        graph.replay()


def test_a_graph_captured_in_one_recording_is_known_in_the_next(dev: Any) -> None:
    x, rows, graph = torch.zeros(8, 4, device="cuda"), torch.zeros(2, dtype=torch.int64, device="cuda"), dev.CUDAGraph()
    with refimpl.record("cuda"), dev.graph(graph):
        x.index_fill_(0, rows, 1.0)
    rows.copy_(torch.tensor([2, 5]))
    with refimpl.record("cuda") as recording:
        recording.name(x, "x")
        recording.name(graph, "step")
        graph.replay()
    (launch,) = recording.ops
    assert launch.name == "step"  # type: ignore[attr-defined]
    writes = [r for node in launch.nodes for r in node.writes if r.buf == "x"]  # type: ignore[attr-defined]
    assert [(r.off, r.len, r.rows, r.stride) for r in writes] == [(32, 16, 2, 48)]


def test_everything_is_restored_after_an_error(dev: Any) -> None:
    names = [(torch.cuda.Event, "record"), (torch.cuda.Stream, "wait_stream"), (torch.cuda.CUDAGraph, "replay")]
    before = [getattr(owner, name) for owner, name in names] + [torch.cuda.synchronize]
    with pytest.raises(ZeroDivisionError), refimpl.record("cuda"):
        1 / 0  # noqa: B018
    assert [getattr(owner, name) for owner, name in names] + [torch.cuda.synchronize] == before


def test_a_recording_on_a_gpu_has_no_trace(dev: Any) -> None:
    with refimpl.record("cuda") as recording:
        torch.zeros(4, device="cuda")
    with pytest.raises(RuntimeError, match="no times"):
        recording.trace()


def test_training_is_recorded_with_the_backward_pass(dev: Any) -> None:
    layer = torch.nn.Linear(8, 8, device="cuda")
    x = torch.ones(2, 8, device="cuda")
    dev.synchronize()
    with refimpl.record() as recording:
        recording.name(layer.weight, "weight")
        layer(x).sum().backward()
        with torch.no_grad():
            layer.weight.add_(layer.weight.grad)
    launches = [op for op in recording.ops if isinstance(op, Launch)]
    assert any("mm" in op.name for op in launches)
    assert any(r.buf == "weight" for r in launches[-1].writes)
    assert check(recording).verdict is Verdict.OK
