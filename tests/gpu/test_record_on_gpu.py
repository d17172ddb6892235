"""A recording on a GPU is the simulated device's program of the same code, and judges what really happened."""

import json
import subprocess
import sys
from typing import Any

import pytest
import torch

import refimpl
from refimpl import device
from refimpl.fences import VerifyDone
from refimpl.lessons.captured_step import NANO, CapturedStep
from refimpl.lessons.overlap import OverlapLoop
from refimpl.lessons.overlap_program import overlap_program
from refimpl.lessons.record_overlap import outline as chapter_outline
from refimpl.order import check
from refimpl.program import Launch, Range, Verdict, label
from refimpl.record import cuda_log
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


@pytest.mark.parametrize("fence", list(VerifyDone))
def test_the_first_chapter_s_loop_does_on_a_gpu_what_its_drawn_program_says(fence: VerifyDone) -> None:
    with refimpl.record("cuda"):
        step = CapturedStep("cuda", NANO)
    loop = OverlapLoop("cuda", step, max_steps=5)
    loop.reset(5)
    with refimpl.record("cuda") as recording:
        for name in ("schedule", "forward", "copy"):
            recording.name(getattr(loop, f"{name}_stream"), name)
        for name in ("batch_lens", "results", "results_cpu"):
            recording.name(getattr(loop, name), name)
        recording.name(step.seq_lens, "seq_lens")
        recording.name(step.new_seq_lens, "new_seq_lens")
        for n, event in enumerate(loop.copy_done):
            recording.name(event, f"copy_done {n}")
        for n in range(5):
            loop.iteration_overlap(fence, n, host_us=1000.0)
        recording.name(loop.verify_done, "verify_done")
    assert chapter_outline(recording.program()) == chapter_outline(overlap_program(fence))


def test_a_kernel_that_no_operator_shows_is_one_launch_of_what_is_stated(dev: Any) -> None:
    from tests.gpu.kernels import gather_rows

    table, rows = torch.arange(64, dtype=torch.float32, device="cuda").view(16, 4), torch.tensor([9, 2], device="cuda")
    out = torch.zeros(2, 4, device="cuda")
    with refimpl.record("cuda") as recording:
        for thing, name in ((table, "table"), (rows, "rows"), (out, "out")):
            recording.name(thing, name)
        with refimpl.touches(reads=[(table, rows), rows], writes=[out], launch="gather_rows"):
            gather_rows(table, rows, out)
    (launch,) = recording.ops
    assert isinstance(launch, Launch)
    assert launch.name == "gather_rows"
    assert launch.reads == (Range("table", 32, 16, 2, 112), Range("rows", 0, 16))
    assert launch.writes == (Range("out", 0, 32),)
    assert out.tolist() == table[rows].tolist()


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


def test_operators_are_seen_in_inference_mode(dev: Any) -> None:
    layer, x = torch.nn.Linear(8, 8, device="cuda"), torch.ones(2, 8, device="cuda")
    dev.synchronize()
    with refimpl.record() as recording, torch.inference_mode():
        recording.name(layer.weight, "weight")
        layer(x).softmax(-1)
    assert [r.buf for op in recording.ops if isinstance(op, Launch) for r in op.reads].count("weight") == 1
    assert len(recording.ops) == 2


def test_a_log_of_index_values_that_is_full_gets_more_room(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_log, "_CHUNK", 4)
    table = torch.zeros(64, 4, device="cuda")
    picks = [torch.tensor([n, n + 7], device="cuda") for n in range(9)]
    dev.synchronize()
    with refimpl.record("cuda") as recording:
        for rows in picks:
            table.index_fill_(0, rows, 1.0)
    found = [op.writes[0] for op in recording.ops if isinstance(op, Launch)]
    assert [(r.off, r.rows, r.stride) for r in found] == [(16 * n, 2, 112) for n in range(9)]
    assert recording.widened == ()


def test_a_wait_in_a_stated_launch_is_an_error(dev: Any) -> None:
    x = torch.zeros(8, device="cuda")

    def launch() -> None:
        with refimpl.touches(writes=[x], launch="kernel"):
            x.sum().item()

    with refimpl.record("cuda"), pytest.raises(RuntimeError, match=r"touches\(launch='kernel'\): something waits"):
        launch()


def test_a_stated_launch_of_operators_is_one_op(dev: Any) -> None:
    x, y = torch.zeros(8, device="cuda"), torch.zeros(8, device="cuda")
    with refimpl.record("cuda") as recording:
        recording.name(x, "x")
        with refimpl.touches(writes=[(x, [0, 1])], launch="kernel"):
            y.add_(1)
            x.add_(1)
    (op,) = recording.ops
    assert isinstance(op, Launch)
    assert [r for r in op.writes if r.buf == "x"] == [Range("x", 0, 8)]


@pytest.mark.parametrize("fenced", [True, False])
@pytest.mark.parametrize("read", ["add_", "repr", "index"])
def test_a_host_tensor_that_is_read_beside_the_device_is_in_the_recording(dev: Any, read: str, fenced: bool) -> None:
    number, index = torch.zeros(()).pin_memory(), torch.zeros(1, dtype=torch.int64).pin_memory()
    value, rows, x, side = (
        torch.ones((), device="cuda"),
        torch.ones(1, device="cuda").long(),
        torch.ones(4),
        dev.Stream(),
    )
    x = x.to("cuda")
    dev.synchronize()
    with refimpl.record("cuda") as recording:
        with dev.stream(side):
            number.copy_(value, non_blocking=True)
            index.copy_(rows, non_blocking=True)
        if fenced:
            side.synchronize()
        {"add_": lambda: x.add_(number), "repr": lambda: repr(number), "index": lambda: x[index]}[read]()
    assert check(recording).verdict is (Verdict.OK if fenced else Verdict.RACE)


def test_a_printed_tensor_is_read_by_a_copy_that_the_host_waits_for(dev: Any) -> None:
    x = torch.zeros(4, device="cuda")
    with refimpl.record("cuda") as recording:
        x.add_(1)
        repr(x)
    assert [op.op for op in recording.ops[:3]] == ["launch", "memcpy", "stream_sync"]
